"""Reading: what a model says about a text, as plain values.

    surprisal(w_t) = -log p(w_t | w_1 ... w_{t-1})      bits or nats, see `model.strings`

Every predicted token has a surprisal, including the end of each sentence, so the surprisals of all
tokens sum to the surprisal of the text. It is the sum of the entity surprisal, -log p of the
token's row (Eq. 1), and the spelling surprisal, which is negative if other rows make the same
string likely.

An entity is described after each sentence that mentions it: d_{e,i}, the words nearest to its x_e
and y_e (Eqs. 9 and 10), and what the sentence changed.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dntm.corpus.text import as_prose
from dntm.evaluation.groups import Group, groups_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dntm.reader.streaming import ReadingPosition

Unit = Literal["bits", "nats"]
NATS: dict[Unit, float] = {"bits": math.log(2), "nats": 1.0}
"""Nats per unit."""

END = "<eos>"
"""The word of a token that is the end of a sentence."""
SURPRISALS = (
    *("surprisal", "entity_surprisal", "spelling_surprisal", "entropy"),
    *("static_surprisal", "static_entity_surprisal", "static_spelling_surprisal"),
    "static_entropy",
)
"""The columns with the scores of both models."""
COLUMNS = (
    *("document", "paragraph", "sentence", "position", "start", "end", "word_index", "word"),
    *("entity", "name", "occurrence", "group", "unknown", "character_count"),
    *("unigram_surprisal", "entropy_reduction", *SURPRISALS),
)
"""Columns of a table with one row per token. Paragraphs, sentences and positions count from 1,
characters (`start`, `end`) and whitespace-separated words (`word_index`) from 0; unknown is 0 or
1."""
WORD_COLUMNS = (
    *("document", "paragraph", "sentence", "word_index", "start", "end", "word", "tokens"),
    *("entity", "name", "occurrence", "group", "mention_part", "mention_words", "unknown"),
    *("character_count", "unigram_surprisal", "entropy_reduction", *SURPRISALS),
    *("end_surprisal", "end_static_surprisal"),
)
"""Columns of a table with one row per whitespace-separated word; see `word_rows`."""


def check_unit(unit: str) -> None:
    """Raise ValueError if there is no such unit."""
    if unit not in NATS:
        raise ValueError(f"unit {unit!r}, expected {' or '.join(NATS)}")


def in_bits(value: float, unit: Unit) -> float:
    """Convert a value of some unit to bits."""
    return value * NATS[unit] / NATS["bits"]


class Plain:
    """A dataclass of values that JSON can hold."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Convert to a dictionary for JSON."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class TokenReading(Plain):
    """One predicted token; `static_` values are those of the static baseline."""

    word: str
    """As written in the text: a mention's own words; <eos> for the end of a sentence."""
    entity: int
    """The entity's number if the token is a mention, else 0."""
    occurrence: int
    """How often the entity has occurred, including this token; 0 for other tokens."""
    group: Group
    """`first_mentions` or `reappearing` for a mention; `following` for another token right after a
    mention; else `non_entities`."""
    parts: Sequence[tuple[int, float, float]]
    """For each of its words: the index of the whitespace-separated word that contains it, and its
    surprisal under both models."""
    entity_surprisal: float
    """-log p of its row: that of the entity, of the word or of <unk>."""
    static_entity_surprisal: float
    unknown: bool = False
    """Whether the model has no row for the word."""
    end: bool = False
    entropy: float = 0.0
    """Of the distribution over tokens at this position."""
    static_entropy: float = 0.0
    entropy_reduction: float | None = None
    """The entropy before this token minus that before the next one; None at a sentence end."""
    follows: int = 0
    """The entity mentioned by the preceding token of the sentence, else 0."""
    span: tuple[int, int] = (0, 0)
    """Its characters in the text; the end of a sentence is empty and follows the last token."""
    words: tuple[int, int] = (0, 0)
    """The range of whitespace-separated words that it covers."""
    unigram_surprisal: float | None = None
    """-log of the word's relative frequency in the training text; None for mentions, and if the
    vocabulary has no counts."""

    def __repr__(self) -> str:
        values = f"surprisal={self.surprisal:.2f}, static_surprisal={self.static_surprisal:.2f}"
        return f"TokenReading({self.word!r}, entity={self.entity}, {values})"

    @property
    def surprisal(self) -> float:
        """The sum over its words."""
        return sum(part[1] for part in self.parts)

    @property
    def static_surprisal(self) -> float:
        """The surprisal under the static baseline."""
        return sum(part[2] for part in self.parts)

    @property
    def spelling_surprisal(self) -> float:
        """What the string costs beyond its row; it can be negative."""
        return self.surprisal - self.entity_surprisal

    @property
    def static_spelling_surprisal(self) -> float:
        """The same under the static baseline."""
        return self.static_surprisal - self.static_entity_surprisal

    @property
    def surprisals(self) -> tuple[float, ...]:
        """The values of `SURPRISALS`."""
        return tuple(getattr(self, name) for name in SURPRISALS)

    def to_dict(self) -> dict[str, Any]:
        """Convert to a dictionary for JSON."""
        return asdict(self) | dict(zip(SURPRISALS, self.surprisals, strict=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbor(Plain):
    """A word of the vocabulary near to an entity."""

    word: str
    similarity: float
    """Cosine of the embeddings after the sentence, minus that of entities not yet mentioned."""
    probability: float = 0.0
    """p(w | e) after the sentence: that the entity is this word."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class EntityReading(Plain):
    """An entity after a sentence that mentions it. Word lists are sorted, the best word first."""

    entity: int
    name: str
    occurrence: int
    """Its mentions so far."""
    row: int
    """Its slot in the model, from 1."""
    representation: Sequence[float]
    """d_{e,i}; empty if the model has no dynamic embeddings."""
    input_words: Sequence[Neighbor] = ()
    """The words nearest to x_e."""
    output_words: Sequence[Neighbor] = ()
    """The words nearest to y_e."""
    change: float = 0.0
    """How far the sentence moved d (Euclidean distance)."""
    predicted_words: Sequence[Neighbor] = ()
    """The most probable words for the entity."""
    confidence: float | None = None
    """The probability of the first three predicted words together; None if the model was not
    trained to predict words for entities."""

    def __repr__(self) -> str:
        words = ", ".join(near.word for near in self.predicted_words[:3])
        return f"EntityReading({self.name!r}, mentions={self.occurrence}, predicted_words={words})"


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceReading:
    """One sentence, and the entities it mentions as they are after it. Numbers start from 0."""

    index: int
    tokens: Sequence[TokenReading]
    entities: Sequence[EntityReading]
    paragraph: int = 0
    position: "ReadingPosition | None" = field(default=None, repr=False, compare=False)
    """Where to continue after it; only sentences of a stream have one."""

    def __repr__(self) -> str:
        words = " ".join(token.word for token in self.tokens)
        return f"SentenceReading({self.index}, {words!r:.80}, entities={len(self.entities)})"

    def to_dict(self) -> dict[str, Any]:
        """Convert to a dictionary for JSON, without the position."""
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
    """The name of each entity: its first mention that is not a pronoun."""
    unit: Unit
    text: str = ""
    place: tuple[int, int] = (0, 0)
    """If this is a part of a longer text: the characters and the words before it."""

    def __repr__(self) -> str:
        return (
            f"Reading({self.name!r}, sentences={len(self.sentences)}, tokens={len(self.tokens)}, "
            f"entities={len(self.entities)}, {self.unit}={self.surprisal:.1f})"
        )

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
        """The text's surprisal under the static baseline."""
        return sum(token.static_surprisal for token in self.tokens)

    @property
    def bits_per_character(self) -> float:
        """The text's surprisal in bits, divided by its number of characters."""
        return in_bits(self.surprisal, self.unit) / self.characters

    @property
    def static_bits_per_character(self) -> float:
        """The same under the static baseline."""
        return in_bits(self.static_surprisal, self.unit) / self.characters

    @property
    def characters(self) -> int:
        """The number of characters of the running text, plus one for each sentence end."""
        sentences = ((t.word for t in s.tokens if not t.end) for s in self.sentences)
        return sum(len(as_prose(words)) + 1 for words in sentences)

    def totals(self) -> dict[str, dict[str, int | float]]:
        """Tokens and surprisals of each group, as in Table 2.

        Groups overlap: `following` contains mentions, too, and `non_entities` contains all tokens
        that are not mentions.
        """
        tokens = self.tokens
        found = groups_of(
            np.array([token.occurrence for token in tokens], dtype=np.int64),
            np.array([token.follows for token in tokens], dtype=np.int64),
        )
        return {
            str(group): {
                "tokens": int(mask.sum()),
                "surprisal": sum(t.surprisal for t in compress(tokens, mask)),
                "static_surprisal": sum(t.static_surprisal for t in compress(tokens, mask)),
            }
            for group, mask in found.items()
        }

    def trail(self, entity: int | str) -> list[tuple[int, EntityReading]]:
        """The states of an entity, by number or name, each with the index of its sentence."""
        named = ((s.index, e) for s in self.sentences for e in s.entities)
        return [(index, e) for index, e in named if entity in (e.entity, e.name)]

    def to_dict(self) -> dict[str, Any]:
        """Convert to a dictionary for JSON; keys are strings."""
        return {
            "name": self.name,
            "unit": self.unit,
            "entities": {str(number): name for number, name in self.entities.items()},
            "totals": self.totals(),
            "bits_per_character": self.bits_per_character,
            "static_bits_per_character": self.static_bits_per_character,
            "sentences": [sentence.to_dict() for sentence in self.sentences],
        }

    def to_frame(self, *, words: bool = False) -> Any:
        """A pandas data frame with one row per token (or per word), as in `dntm score`."""
        try:
            import pandas as pd
        except ImportError:
            raise ValueError("a data frame needs pandas: pip install pandas") from None
        rows = self.word_rows() if words else self.token_rows()
        return pd.DataFrame(list(rows), columns=list(WORD_COLUMNS if words else COLUMNS))

    def plot(self, entity: int | str | None = None) -> "Figure":
        """A matplotlib figure: surprisal with and without memory or, if the number or name of an
        `entity` is given, the probabilities of its predicted words after each of its sentences.
        """
        from dntm.reader.plots import plot

        return plot(self, entity)

    def token_rows(self) -> Iterator[tuple[object, ...]]:
        """One row of `COLUMNS` per predicted token."""
        for sentence in self.sentences:
            for position, token in enumerate(sentence.tokens, start=1):
                name = self.entities.get(token.entity, "")
                yield (
                    *(self.name, sentence.paragraph + 1, sentence.index + 1, position),
                    *(*token.span, token.words[0], token.word, token.entity, name),
                    *(token.occurrence, token.group, int(token.unknown)),
                    *(0 if token.end else len(token.word), token.unigram_surprisal),
                    *(token.entropy_reduction, *token.surprisals),
                )

    def word_rows(self) -> Iterator[tuple[object, ...]]:
        """One row of `WORD_COLUMNS` per word of `text.split()`, in order.

        Surprisals are summed over the tokens of a word. Every word of a mention has its own
        surprisal; the first one (`mention_part` 1) has the entity surprisal. The last word of a
        sentence has the surprisal of the sentence end, so the columns sum to the surprisal of the
        text. A word without visible characters has no token.
        """
        found: dict[int, tuple[SentenceReading, list[TokenReading]]] = {}
        for sentence in self.sentences:
            for token in sentence.tokens:
                for index in range(*token.words):
                    found.setdefault(index, (sentence, []))[1].append(token)
        sentence = self.sentences[0]
        for index, match in enumerate(re.finditer(r"\S+", self.text), start=self.place[1]):
            sentence, tokens = found.get(index, (sentence, []))
            yield self._word_row(sentence, index, match, tokens)

    def _word_row(
        self,
        sentence: SentenceReading,
        index: int,
        match: re.Match[str],
        tokens: Sequence[TokenReading],
    ) -> tuple[object, ...]:
        inside = [token for token in tokens if not token.end]
        new = [token for token in inside if token.words[0] == index]
        ends = [token for token in tokens if token.end]
        mention = next((token for token in inside if token.entity), None)
        group = inside[0].group if inside else Group.NON_ENTITIES
        about: tuple[object, ...] = (0, "", 0, group, 0, 0)
        if mention is not None:
            part, count = index - mention.words[0] + 1, mention.words[1] - mention.words[0]
            name = self.entities.get(mention.entity, "")
            about = (mention.entity, name, mention.occurrence, mention.group, part, count)
        later = mention is not None and part > 1
        first = new[0] if new and not later else None
        word = next((token for token in new if token.word[0].isalnum()), first) if first else None
        parts = [part for token in inside for part in token.parts if part[0] == index]
        values: list[object] = []
        for model in (1, 2):
            total = sum(part[model] for part in parts)
            entity = sum(token.surprisals[4 * model - 3] for token in new)
            values += [total, entity, total - entity, first and first.surprisals[4 * model - 1]]
        return (
            *(self.name, sentence.paragraph + 1, sentence.index + 1),
            *(index, *(self.place[0] + end for end in match.span()), match[0], len(new), *about),
            *(int(any(token.unknown for token in inside)), len(match[0])),
            word and word.unigram_surprisal,
            first and sum(token.entropy_reduction or 0 for token in new),
            *values,
            sum(token.surprisal for token in ends),
            sum(token.static_surprisal for token in ends),
        )
