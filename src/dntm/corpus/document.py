"""Documents: what every reader gives, and what the anonymiser makes of them (Section 4).

A `Document` is sentences of words with chains of mentions over them, as annotated: mentions may
nest. An `AnonymizedDocument` is what a language model reads: every mention that was kept is a
single integer token, the entity's number by first appearance, and nothing overlaps any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

Token = str | int
"""A word, or an entity's number (1, 2, ... by first appearance in the document)."""


class Span(NamedTuple):
    """Characters `start` to `end` (excluded) of a text."""

    start: int
    end: int


class Mention(NamedTuple):
    """Words `start` to `end` (excluded) of one sentence, all counted from zero."""

    sentence: int
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A text with coreference chains, as a reader gives it."""

    name: str
    sentences: Sequence[Sequence[str]]
    chains: Sequence[Sequence[Mention]] = ()
    named_entities: Sequence[Mention] = ()
    """Spans tagged as named entities, inside a chain or not."""
    part: str = ""
    """Its part, where the corpus cuts one document into several; splits keep them together."""
    source: str = ""
    """The file it was read from, relative to the corpus; tells its split where folders do."""
    text: str = ""
    """The text as it was written, where it was plain text."""
    spans: Sequence[Sequence[Span]] = ()
    """Where each word stands in the text; `sentences` hold the words as they are looked up."""
    paragraphs: Sequence[int] = ()
    """The paragraph of each sentence, from 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnonymizedDocument:
    """A text in which each mention has become its entity's number."""

    name: str
    sentences: Sequence[Sequence[Token]]
    surfaces: Sequence[Sequence[str]] = ()
    """The original words of every entity token, in reading order."""
    ideal: Sequence[Sequence[float]] | None = None
    """Log-probability (nats) that an ideal reader gives to each token and to the end of each
    sentence, where the text's distribution is known exactly (storyworld)."""

    @property
    def entities(self) -> int:
        """How many different entities the document mentions."""
        return len({token for s in self.sentences for token in s if isinstance(token, int)})

    @property
    def largest(self) -> int:
        """The largest number of an entity."""
        return max((t for s in self.sentences for t in s if isinstance(t, int)), default=0)


def are_sentences(value: object, kinds: tuple[type, ...]) -> bool:
    """Whether a value read from JSON is a list of lists of such tokens."""
    return isinstance(value, list) and all(
        isinstance(sentence, list) and all(type(token) in kinds for token in sentence)
        for sentence in value
    )


def check(document: Document) -> None:
    """Raise ValueError where a document is empty or a mention lies outside its sentence."""
    if not any(word.strip() for sentence in document.sentences for word in sentence):
        raise ValueError(f"document {document.name!r} is empty: expected at least one word")
    _check_words([document.name or "-"], "the document's name")
    for number, words in enumerate(document.sentences):
        _check_words(words, f"document {document.name!r}, sentence {number}")
    lengths = [len(sentence) for sentence in document.sentences]
    for mention in (m for chain in (*document.chains, document.named_entities) for m in chain):
        sentence, start, end = mention
        if not 0 <= sentence < len(lengths):
            raise ValueError(
                f"document {document.name!r}: a mention in sentence {sentence}, "
                f"expected 0 to {len(lengths) - 1}"
            )
        if not 0 <= start < end <= lengths[sentence]:
            raise ValueError(
                f"document {document.name!r}, sentence {sentence}: a mention from word {start} "
                f"to {end}, expected inside its {lengths[sentence]} words"
            )


def _check_words(words: Sequence[str], where: str) -> None:
    text = " ".join(words)
    if "" in words or "\n" in text or "\r" in text:
        odd = next(word for word in words if not word or "\n" in word or "\r" in word)
        raise ValueError(f"{where}: the word {odd!r}, expected characters and no line break")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{where}: the character {text[error.start]!r} cannot be written as UTF-8"
        ) from None
