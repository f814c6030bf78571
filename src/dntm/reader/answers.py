"""Answers to what can be asked of a reader beside the reading itself, as plain values."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dntm.reader.frames import frame
from dntm.reader.reading import COLUMNS, Reading


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
