"""Questions about a text beside the reading itself, and their answers as plain values.

What comes next (Eq. 1); which word or entity stands in a gap, by the likelihood of the whole
sentence with it, as in the paper's cloze test (Section 5); another entity in the place of a
mention; and how the text goes on, sampled:

    p_T(w) ~ p(w)^(1/T)      then only the likeliest words that together have probability top_p

Each sampled sentence is read like any other, so the entities it mentions mean something else in
the next one. <unk> and <bos> are never drawn, nor entities that have no row: they would have no
name.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from dntm.corpus.document import Token
from dntm.corpus.rows import Loan
from dntm.corpus.vocabulary import BOS, EOS, UNK, Vocabulary, entity_rows
from dntm.reader.engine import Engine, ModelPair, States, next_token
from dntm.reader.reading import COLUMNS, NATS, Reading, Unit, frame
from dntm.reader.streaming import ReadingPosition, Streaming, reading_of
from dntm.reader.text import GAP, PreparedText, Word, as_prose, tokens_of

Choose = Literal["both", "words", "entities"]
_AT_ONCE = 64
"""Sentences scored side by side."""
LONGEST = 500
"""Words of a sentence whose gap is filled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A token that may come next."""

    word: str
    """The word, an entity's name ([k] where it has not been seen yet), <eos> or <unk>."""
    entity: int
    """The entity's number, else 0."""
    probability: float
    static_probability: float
    """The same under the static model."""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Predictions:
    """What comes next, as the dynamic and as the static model see it."""

    dynamic: Sequence[Candidate]
    """The likeliest tokens of the dynamic model, likeliest first."""
    static: Sequence[Candidate]
    """The likeliest tokens of the static model, likeliest first."""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        return asdict(self)

    def to_frame(self) -> Any:
        """A pandas data frame with a row for each model and rank (from 1)."""
        columns = ("model", "rank", "word", "entity", "probability", "static_probability")
        return frame(
            (
                (model, rank, c.word, c.entity, c.probability, c.static_probability)
                for model, likely in (("dynamic", self.dynamic), ("static", self.static))
                for rank, c in enumerate(likely, start=1)
            ),
            columns,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Filling:
    """A word or an entity in a gap."""

    word: str
    entity: int
    """The entity's number, else 0."""
    surprisal: float
    """Of the whole sentence, the gap filled, its end included."""
    static_surprisal: float
    """The same under the static model."""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Swap:
    """A text before and after one mention was given to another entity."""

    sentence: int
    """Where the mention stands, from 0."""
    position: int
    """Its token in the sentence, from 0."""
    before: Reading
    after: Reading

    @property
    def mention(self) -> float:
        """By how much the swap raised the surprisal of the mention itself."""
        return self._raised(self.sentence, self.position, self.position + 1)

    @property
    def rest_of_sentence(self) -> float:
        """By how much it raised that of the rest of the sentence."""
        return self._raised(self.sentence, self.position + 1, None)

    @property
    def later_sentences(self) -> float:
        """By how much it raised that of all later sentences."""
        later = range(self.sentence + 1, len(self.before.sentences))
        return sum(self._raised(sentence, 0, None) for sentence in later)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        return {
            "sentence": self.sentence,
            "position": self.position,
            "mention": self.mention,
            "rest_of_sentence": self.rest_of_sentence,
            "later_sentences": self.later_sentences,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
        }

    def to_frame(self) -> Any:
        """A pandas data frame: the tokens of both readings, told apart by the first column."""
        both = (("before", self.before), ("after", self.after))
        rows = ((name, *row) for name, reading in both for row in reading.rows())
        return frame(rows, ("reading", *COLUMNS))

    def _raised(self, sentence: int, start: int, end: int | None) -> float:
        pair = self.before.sentences[sentence].tokens, self.after.sentences[sentence].tokens
        before, after = (sum(token.surprisal for token in tokens[start:end]) for tokens in pair)
        return after - before


@dataclass(frozen=True, kw_only=True, slots=True)
class Continuation:
    """A sampled continuation of a text."""

    sentences: Sequence[Sequence[str]]
    """Its words, an entity by its name."""
    entities: Sequence[Sequence[int]]
    """Beside each word the entity it mentions, else 0."""
    text: str
    """The same as a text is written."""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        return asdict(self)


def _entity(row: int, position: ReadingPosition, vocabulary: Vocabulary) -> int:
    """The entity that has a row; of one that nobody has yet its own number, else 0."""
    number = vocabulary.entity_at(row)
    return position.lender.owner(number) or number


def _label(row: int, position: ReadingPosition, vocabulary: Vocabulary) -> str:
    """The word of a row; an entity's name once it has been seen."""
    if (entity := _entity(row, position, vocabulary)) in position.occurrences:
        return position.names[entity]
    return vocabulary.label(row)


class _Placed(NamedTuple):
    """A sentence that may come next."""

    rows: list[int]
    """Of its tokens."""
    loans: list[Loan]
    """All of them before its first word, so that its entities have their rows throughout."""
    position: ReadingPosition
    """The place before it, with those who then have a row."""

    @property
    def states(self) -> States:
        """Both models' states, before the loans."""
        return States(self.position.dynamic, self.position.static)


def _placed(engine: Engine, position: ReadingPosition, tokens: Sequence[Token]) -> _Placed:
    lender = position.lender.copy()
    rows, loans = engine.rows(tokens, lender)
    first = [loan._replace(position=0) for loan in loans]
    return _Placed(rows, first, replace(position, lender=lender))


def predict(
    engine: Engine, position: ReadingPosition, tokens: Sequence[Token], k: int
) -> Predictions:
    """The k likeliest tokens of each model, with the probabilities of both."""
    if k < 1:
        raise ValueError(f"k is {k}, expected at least 1")
    models, vocabulary = engine.models, engine.models.vocabulary
    placed = _placed(engine, position, tokens)
    (dynamic, _), (static, _) = (
        next_token(model, state, [BOS, *placed.rows], placed.loans)
        for model, state in zip((models.dynamic, models.static), placed.states, strict=True)
    )
    position = placed.position

    def likeliest(by: Tensor) -> list[Candidate]:
        return [
            Candidate(
                word=_label(row, position, vocabulary),
                entity=_entity(row, position, vocabulary),
                probability=float(dynamic[row].exp()),
                static_probability=float(static[row].exp()),
            )
            for row in by.topk(min(k, len(vocabulary))).indices.tolist()
        ]

    return Predictions(dynamic=likeliest(dynamic), static=likeliest(static))


def fill_gap(
    engine: Engine,
    position: ReadingPosition,
    sentence: str,
    *,
    choose: Choose,
    candidates: int,
    unit: Unit,
) -> list[Filling]:
    """Words and entities in the gap of a sentence, the likeliest sentence first.

    Tried are every entity that has a row, and the `candidates` words likeliest at the gap (0: all).
    """
    if candidates < 0:
        raise ValueError(f"candidates is {candidates}, expected 0 (all words) or more")
    tokens = tokens_of(sentence, position.names, position.surfaces, engine.lexicon)
    if len(tokens) > LONGEST:
        raise ValueError(
            f"the sentence has {len(tokens):,} words, expected at most {LONGEST}: it is read once "
            "for every word that is tried"
        )
    gap = _gap_of(tokens)
    placed = _placed(engine, position, [*tokens[:gap], *tokens[gap + 1 :]])
    before, rest = [BOS, *placed.rows[:gap]], [*placed.rows[gap:], EOS]
    tried = _tried(engine, placed, before, choose, candidates)
    position = placed.position
    nats: list[tuple[float, float]] = []
    for start in range(0, len(tried), _AT_ONCE):
        filled = [[*before, row, *rest] for row in tried[start : start + _AT_ONCE]]
        nats += engine.sentence_nats(filled, placed.loans, placed.states)
    vocabulary = engine.models.vocabulary
    fillings = [
        Filling(
            word=_label(row, position, vocabulary),
            entity=_entity(row, position, vocabulary),
            surprisal=dynamic / NATS[unit],
            static_surprisal=static / NATS[unit],
        )
        for row, (dynamic, static) in zip(tried, nats, strict=True)
    ]
    return sorted(fillings, key=lambda filling: filling.surprisal)


def _tried(
    engine: Engine, placed: _Placed, before: Sequence[int], choose: Choose, words: int
) -> list[int]:
    vocabulary = engine.models.vocabulary
    entities = [vocabulary.entity_row(row) for row in sorted(placed.position.lender.owned())]
    if choose == "entities":
        return entities
    first = entity_rows(vocabulary.entities).stop
    likely, _ = next_token(engine.models.dynamic, placed.states.dynamic, before, placed.loans)
    count = min(words, len(vocabulary.words)) or len(vocabulary.words)
    chosen = [first + place for place in likely[first:].topk(count).indices.tolist()]
    return chosen if choose == "words" else entities + chosen


def _gap_of(tokens: Sequence[Token]) -> int:
    if (found := tokens.count(GAP)) != 1:
        raise ValueError(f"the sentence has {found} gaps, expected one: {GAP}")
    return tokens.index(GAP)


def swap_mention(
    streaming: Streaming, text: PreparedText, mention: tuple[int, int], entity: int, unit: Unit
) -> Swap:
    """Read a text as it is, and with a mention, (sentence, token) from 0, given to an entity."""
    other = _swapped(text, mention, entity)
    before = list(streaming.read(text, unit))
    after = list(streaming.read(other, unit, before))
    return Swap(
        sentence=mention[0],
        position=mention[1],
        before=reading_of(text, before, unit),
        after=reading_of(other, after, unit),
    )


def _swapped(text: PreparedText, mention: tuple[int, int], entity: int) -> PreparedText:
    """The text after the swap, in which the entities keep their numbers."""
    names = text.names()
    if entity not in names:
        raise ValueError(f"entity {entity}, expected one of the text's: {sorted(names)}")
    sentences = [list(sentence) for sentence in text.sentences]
    s, t = mention
    if not (0 <= s < len(sentences) and 0 <= t < len(sentences[s])):
        raise ValueError(f"there is no token {t} in sentence {s} of the text (both from 0)")
    if isinstance(sentences[s][t].token, str):
        raise ValueError(
            f"{sentences[s][t].shown!r} (sentence {s}, token {t}) is no mention of an entity"
        )
    sentences[s][t] = Word(entity, (names[entity],))
    return replace(text, sentences=sentences)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How to draw, and how much."""

    sentences: int = 3
    tokens: int = 60
    """The longest a sentence may become."""
    temperature: float = 0.7
    """Below 1 the likely becomes likelier; 0 always takes the likeliest."""
    top_p: float = 0.9
    seed: int = 0

    def __post_init__(self) -> None:
        if self.sentences < 1 or self.tokens < 1:
            raise ValueError(
                f"{self.sentences} sentences of {self.tokens} tokens, expected at least 1 of each"
            )
        if not 0 <= self.temperature < math.inf:
            raise ValueError(f"temperature is {self.temperature}, expected a number from 0 on")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p}, expected above 0 and at most 1")
        if not -(2**63) <= self.seed < 2**64:
            raise ValueError(f"seed is {self.seed}, expected a number of 64 bits")


def sample(models: ModelPair, position: ReadingPosition, sampling: Sampling) -> Continuation:
    """Draw sentences after a position."""
    generator = torch.Generator().manual_seed(sampling.seed)
    model, vocabulary, state = models.dynamic, models.vocabulary, position.dynamic
    forbidden = _forbidden(position, vocabulary)
    sentences: list[list[int]] = []
    for _ in range(sampling.sentences):
        rows = [BOS]
        while len(rows) <= sampling.tokens:
            # From the sentence's beginning: a pointer or a cache looks back on it, too.
            scores, _ = next_token(model, state, rows)
            scores = scores.masked_fill(forbidden, -torch.inf)
            if rows == [BOS]:
                scores[EOS] = -torch.inf
            if (row := _draw(scores, sampling, generator)) == EOS:
                break
            rows.append(row)
        _, state = model.score(model.plan([[[*rows, EOS]]]), state)
        sentences.append(rows[1:])
    words = [[_label(row, position, vocabulary) for row in rows] for rows in sentences]
    return Continuation(
        sentences=words,
        entities=[[_entity(row, position, vocabulary) for row in rows] for rows in sentences],
        text=" ".join(as_prose(sentence) for sentence in words),
    )


def _forbidden(position: ReadingPosition, vocabulary: Vocabulary) -> Tensor:
    rows = torch.zeros(len(vocabulary), dtype=torch.bool)
    rows[[UNK, BOS]] = True
    rows[entity_rows(vocabulary.entities)] = True
    rows[[vocabulary.entity_row(row) for row in position.lender.owned()]] = False
    return rows


def _draw(
    scores: Float[Tensor, " vocabulary"], sampling: Sampling, generator: torch.Generator
) -> int:
    if sampling.temperature == 0:
        return int(scores.argmax())
    below = scores - scores.max()  # first: whatever the temperature, the likeliest stays at 0
    p, rows = (below / sampling.temperature).softmax(0).sort(descending=True, stable=True)
    likelier = p.cumsum(0) - p
    p = p.masked_fill(likelier >= sampling.top_p, 0)
    return int(rows[torch.multinomial(p, 1, generator=generator)])
