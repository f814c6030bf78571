"""Reading: what a model makes of a text, as plain values.

    surprisal(w_t) = -log p(w_t | w_1 ... w_{t-1})      bits or nats, from Eq. 1

Every predicted token has one, the end of each sentence included, so that the surprisals of a text
sum to its own. An entity is shown as it stands after each sentence that mentions it: d_{e,i}, the
words nearest to its x_e and y_e (Eqs. 9 and 10), and what the sentence changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from dntm.reader.frames import frame
from dntm.reader.units import Unit

if TYPE_CHECKING:
    from dntm.reader.position import ReadingPosition

Group = Literal["new", "reappearing", "following", "other"]
GROUPS: tuple[Group, ...] = ("new", "reappearing", "following", "other")
END = "<eos>"
"""What stands for the end of a sentence."""
COLUMNS = (
    *("document", "sentence", "position", "word", "entity", "group", "unknown"),
    *("surprisal", "static_surprisal"),
)
"""A table of tokens, a row each: sentences and positions from 1, unknown 0 or 1."""


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
    """A mention is new or reappearing; a word right after a mention is following."""
    surprisal: float
    static_surprisal: float
    """The same under the static model."""
    unknown: bool = False
    """Whether the model has no row for the word: then its surprisal is that of any unknown word."""
    end: bool = False
    """Whether this is the end of the sentence, which is predicted too."""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbour:
    """A word of the vocabulary and how near it is."""

    word: str
    similarity: float
    """Cosine between the word's embedding and the entity's, after the sentence."""
    change: float
    """By how much the sentence raised it."""

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
    representation: Sequence[float]
    """d_{e,i}; empty where the model has no dynamic representations."""
    input_words: Sequence[Neighbour]
    """The words nearest to x_e, nearest first."""
    output_words: Sequence[Neighbour]
    """The words nearest to y_e, nearest first."""
    gained: Sequence[Neighbour]
    """The words that came nearer through the sentence, most of all first; in the input space
    where that is dynamic, else in the output space."""
    lost: Sequence[Neighbour]
    """The words that went farther, most of all first."""
    change: float
    """How far the sentence moved d: the Euclidean distance."""

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
    position: "ReadingPosition | None" = field(default=None, repr=False, compare=False)
    """Where to read on after it; only a stream's sentences have one."""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON holds it, without the position."""
        return {
            "index": self.index,
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

    def totals(self) -> dict[str, dict[str, float]]:
        """Tokens and surprisals of all tokens and of each group."""
        return {
            name: {
                "tokens": len(tokens),
                "surprisal": sum(token.surprisal for token in tokens),
                "static_surprisal": sum(token.static_surprisal for token in tokens),
            }
            for name, tokens in (
                ("all", self.tokens),
                *((group, [t for t in self.tokens if t.group == group]) for group in GROUPS),
            )
        }

    def trail(self, entity: int) -> list[tuple[int, EntityReading]]:
        """An entity after each sentence that mentions it, with the sentence's index."""
        return [(s.index, e) for s in self.sentences for e in s.entities if e.entity == entity]

    def rows(self) -> Iterator[tuple[object, ...]]:
        """A row of `COLUMNS` for every predicted token."""
        for sentence in self.sentences:
            yield from token_rows(self.name, sentence.index + 1, sentence.tokens)

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

    def to_frame(self) -> Any:
        """A pandas data frame with a row a token, as `dntm score` prints it."""
        return frame(self.rows(), COLUMNS)


def token_rows(
    document: str, sentence: int, tokens: Sequence[TokenReading]
) -> Iterator[tuple[object, ...]]:
    """A row of `COLUMNS` for every token of a sentence (from 1)."""
    for position, token in enumerate(tokens, start=1):
        yield (
            *(document, sentence, position, token.word, token.entity, token.group),
            int(token.unknown),
            *(token.surprisal, token.static_surprisal),
        )
