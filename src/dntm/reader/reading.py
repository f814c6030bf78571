"""Reading: what a model makes of a text, as plain values.

    surprisal(w_t) = -log p(w_t | w_1 ... w_{t-1})      bits or nats, from Eq. 1

Every predicted token has one, the end of each sentence included, so that the surprisals of a text
sum to its own. An entity is shown as it stands after each sentence that mentions it: d_{e,i}, the
words nearest to its x_e and y_e (Eqs. 9 and 10), and what the sentence changed.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from jaxtyping import Float

from dntm.evaluation.groups import groups_of

if TYPE_CHECKING:
    from dntm.reader.streaming import ReadingPosition

Unit = Literal["bits", "nats"]
NATS: dict[Unit, float] = {"bits": math.log(2), "nats": 1.0}
"""How many nats each unit is: a model computes in nats, people prefer bits."""

Group = Literal["new", "reappearing", "following", "other"]
END = "<eos>"
"""What stands for the end of a sentence."""
COLUMNS = (
    *("document", "paragraph", "sentence", "position", "start", "end", "word_index", "word"),
    *("entity", "name", "occurrence", "group", "unknown", "length", "log_frequency"),
    *("surprisal", "entropy", "static_surprisal", "static_entropy"),
)
"""A table of tokens, a row each: paragraphs, sentences and positions from 1, characters (`start`,
`end`) and words between white space (`word_index`) from 0, unknown 0 or 1."""
WORD_COLUMNS = (
    *("document", "paragraph", "sentence", "word_index", "start", "end", "word", "tokens"),
    *("entity", "name", "occurrence", "group", "mention_part", "mention_words", "unknown"),
    *("length", "log_frequency", "surprisal", "entropy", "static_surprisal", "static_entropy"),
    *("end_surprisal", "end_static_surprisal"),
)
"""A table of words between white space, a row each; see `word_rows`."""


def check_unit(unit: str) -> None:
    """Raise ValueError where there is no such unit."""
    if unit not in NATS:
        raise ValueError(f"unit {unit!r}, expected {' or '.join(NATS)}")


def in_bits(value: float, unit: Unit) -> float:
    """What so much of a unit is in bits."""
    return value * NATS[unit] / NATS["bits"]


def frame(rows: Iterable[Sequence[object]], columns: Sequence[str]) -> Any:
    """A data frame; ValueError where pandas, which is no dependency, is missing."""
    try:
        import pandas as pd
    except ImportError:
        raise ValueError("a data frame needs pandas, not installed: pip install pandas") from None
    return pd.DataFrame(list(rows), columns=list(columns))


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenReading:
    """One predicted token."""

    word: str
    """As the text has it: a mention's own words; <eos> for the end of a sentence."""
    entity: int
    """The entity's number where the token is a mention, else 0."""
    occurrence: int
    """How often the entity has occurred, this time included; 0 for other tokens."""
    group: Group
    """The first that fits: a mention is new or reappearing, a word right after one following."""
    surprisal: float
    static_surprisal: float
    """The same under the static model."""
    unknown: bool = False
    """Whether the model has no row for the word: then its surprisal is that of any unknown word."""
    end: bool = False
    """Whether this is the end of the sentence, which is predicted too."""
    entropy: float = 0.0
    """Of the distribution that the token was drawn from."""
    static_entropy: float = 0.0
    follows: int = 0
    """The entity right before this token in its sentence, else 0."""
    span: tuple[int, int] = (0, 0)
    """Its characters in the text; the end of a sentence stands behind its last token."""
    words: tuple[int, int] = (0, 0)
    """The words between white space that it stands in: the first one and the end."""
    log_frequency: float | None = None
    """Natural logarithm of the word's share of the training text; None for mentions, and where the
    model does not know."""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbour:
    """A word of the vocabulary and how near it is."""

    word: str
    similarity: float
    """How near its embedding is to the entity's after the sentence: a cosine, less that of
    entities of which nothing has been read."""
    change: float
    """By how much the sentence raised the similarity."""
    probability: float = 0.0
    """p(w | e) after the sentence: that the entity is this word."""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class EntityReading:
    """An entity as it stands after a sentence that mentions it."""

    entity: int
    name: str
    occurrence: int
    """Its mentions so far."""
    row: int
    """The row of the model, from 1, that it has: its number as long as no row was lent."""
    representation: Sequence[float]
    """d_{e,i}; empty where the model has no dynamic representations."""
    input_words: Sequence[Neighbour]
    """The words nearest to x_e, nearest first."""
    output_words: Sequence[Neighbour]
    """The words nearest to y_e, nearest first."""
    gained: Sequence[Neighbour]
    """The words that the sentence made likelier, most of all first."""
    lost: Sequence[Neighbour]
    """The words that the sentence made less likely, most of all first."""
    change: float
    """How far the sentence moved d: the Euclidean distance."""
    taken_for: Sequence[Neighbour] = ()
    """What the entity is taken for: the likeliest words, likeliest first."""
    sure: float | None = None
    """The probability that it is one of the first three of these; None where the model was not
    trained to name words."""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceReading:
    """One sentence, and the entities it mentions as they stand after it."""

    index: int
    """From 0."""
    tokens: Sequence[TokenReading]
    entities: Sequence[EntityReading]
    paragraph: int = 0
    """From 0."""
    position: "ReadingPosition | None" = field(default=None, repr=False, compare=False)
    """Where to read on after it; only a stream's sentences have one."""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON holds it, without the position."""
        return {
            "index": self.index,
            "paragraph": self.paragraph,
            "tokens": [token.to_dict() for token in self.tokens],
            "entities": [entity.to_dict() for entity in self.entities],
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """A whole text."""

    name: str
    sentences: Sequence[SentenceReading]
    entities: Mapping[int, str]
    """The name of each entity: its first mention that is no pronoun."""
    unit: Unit
    notes: Sequence[str] = ()
    """What a user should know, such as entities for which the model has no row."""
    text: str = ""
    """As it was written."""

    @property
    def tokens(self) -> list[TokenReading]:
        """Every predicted token, in reading order."""
        return [token for sentence in self.sentences for token in sentence.tokens]

    @property
    def surprisal(self) -> float:
        """The text's surprisal: the sum over its tokens."""
        return sum(token.surprisal for token in self.tokens)

    @property
    def static_surprisal(self) -> float:
        """The same under the static model."""
        return sum(token.static_surprisal for token in self.tokens)

    def totals(self) -> dict[str, dict[str, int | float]]:
        """Tokens and surprisals of all tokens and of each group, the groups as in Table 2.

        There a mention right after a mention is also among the tokens that follow one.
        """
        tokens = self.tokens
        found = groups_of(
            np.array([token.occurrence for token in tokens], dtype=np.int64),
            np.array([token.follows for token in tokens], dtype=np.int64),
        )
        found["new"] = found["first_mentions"]
        found["other"] = found["non_entities"] & ~found["following"]
        return {
            name: {
                "tokens": int(found[name].sum()),
                "surprisal": sum(t.surprisal for t in compress(tokens, found[name])),
                "static_surprisal": sum(t.static_surprisal for t in compress(tokens, found[name])),
            }
            for name in ("all", *get_args(Group))
        }

    def trail(self, entity: int) -> list[tuple[int, EntityReading]]:
        """An entity after each sentence that mentions it, with the sentence's index."""
        return [(s.index, e) for s in self.sentences for e in s.entities if e.entity == entity]

    def vectors(self, entity: int | str) -> Float[np.ndarray, "sentences context_dim"]:
        """d_e after each sentence, of an entity's number or name.

        Zero before its first mention; a sentence that does not mention it changes nothing.
        """
        names = {name: number for number, name in self.entities.items()}
        number = names.get(entity, 0) if isinstance(entity, str) else entity
        if number not in self.entities:
            known = ", ".join(self.entities.values())
            raise ValueError(f"{self.name} has no entity {entity!r}, only {known or 'none'}")
        trail = {index: found.representation for index, found in self.trail(number)}
        rows, d = [], [0.0] * len(next(iter(trail.values()), ()))
        for sentence in self.sentences:
            d = list(trail.get(sentence.index, d))
            rows.append(d)
        return np.array(rows, dtype=np.float64).reshape(len(self.sentences), len(d))

    def rows(self) -> Iterator[tuple[object, ...]]:
        """A row of `COLUMNS` for every predicted token."""
        for sentence in self.sentences:
            yield from token_rows(self.name, sentence, self.entities)

    def word_rows(self) -> Iterator[tuple[object, ...]]:
        """A row of `WORD_COLUMNS` for every word between white space."""
        return word_rows(self.name, self.text, self.sentences, self.entities)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON holds it; keys are strings."""
        return {
            "name": self.name,
            "unit": self.unit,
            "entities": {str(number): name for number, name in self.entities.items()},
            "notes": list(self.notes),
            "totals": self.totals(),
            "sentences": [sentence.to_dict() for sentence in self.sentences],
        }

    def to_frame(self, *, words: bool = False) -> Any:
        """A pandas data frame with a row a token (or a word), as `dntm score` prints it."""
        if words:
            return frame(self.word_rows(), WORD_COLUMNS)
        return frame(self.rows(), COLUMNS)


def token_rows(
    document: str, sentence: SentenceReading, names: Mapping[int, str]
) -> Iterator[tuple[object, ...]]:
    """A row of `COLUMNS` for every token of a sentence."""
    for position, token in enumerate(sentence.tokens, start=1):
        yield (
            *(document, sentence.paragraph + 1, sentence.index + 1, position),
            *(*token.span, token.words[0], token.word, token.entity, names.get(token.entity, "")),
            *(token.occurrence, token.group, int(token.unknown)),
            *(0 if token.end else len(token.word), token.log_frequency),
            *(token.surprisal, token.entropy, token.static_surprisal, token.static_entropy),
        )


def word_rows(
    document: str, text: str, sentences: Iterable[SentenceReading], names: Mapping[int, str]
) -> Iterator[tuple[object, ...]]:
    """A row of `WORD_COLUMNS` for every word of `text.split()`, in its order.

    Surprisals are summed over the tokens of a word. A mention over several words (`mention_words`)
    has its own on the first of them (`mention_part` 1) and 0 on the others. The end of a sentence
    stands beside its last word. So the columns sum to the text's surprisal. A word of characters
    that nobody sees has no token.
    """
    pending: list[TokenReading] = []
    written = re.finditer(r"\S+", text)
    index = -1
    last: SentenceReading | None = None
    for sentence in sentences:
        pending = list(sentence.tokens)
        first, end = pending[0].words[0], max(token.words[1] for token in pending)
        for match in written:
            index += 1
            inside = first <= index < end
            here = [t for t in pending if t.words[0] <= index < t.words[1]] if inside else []
            place = sentence if inside or last is None else last
            closing = index + 1 == end
            yield _word_row(document, place, (index, match), here, names, closing=closing)
            pending = [token for token in pending if token.words[1] > index]
            if closing:
                break
        last = sentence
    for match in written:
        index += 1
        assert last is not None, "a text has a sentence"
        yield _word_row(document, last, (index, match), [], names, closing=False)


def _word_row(
    document: str,
    sentence: SentenceReading,
    written: tuple[int, re.Match[str]],
    tokens: Sequence[TokenReading],
    names: Mapping[int, str],
    *,
    closing: bool,
) -> tuple[object, ...]:
    index, match = written
    words = [token for token in tokens if not token.end]
    new = [token for token in words if token.words[0] == index]
    ends = [token for token in tokens if token.end] if closing else []
    mention = next((token for token in words if token.entity), None)
    said: tuple[object, ...] = (0, "", 0, words[0].group if words else "other", 0, 0)
    if mention is not None:
        place, count = index - mention.words[0] + 1, mention.words[1] - mention.words[0]
        name = names.get(mention.entity, "")
        said = (mention.entity, name, mention.occurrence, mention.group, place, count)
    first = (new[0].log_frequency, new[0].entropy, new[0].static_entropy) if new else (None,) * 3
    return (
        *(document, sentence.paragraph + 1, sentence.index + 1, index, *match.span(), match[0]),
        *(len(new), *said, int(any(token.unknown for token in new)), len(match[0]), first[0]),
        *(sum(token.surprisal for token in new), first[1]),
        *(sum(token.static_surprisal for token in new), first[2]),
        *(sum(token.surprisal for token in ends), sum(token.static_surprisal for token in ends)),
    )
