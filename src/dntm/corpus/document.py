"""Documents: what a reader returns, and what the anonymizer makes of it (Section 4).

A `Document` has sentences of words and coreference chains over them; mentions may nest. In an
`AnonymizedDocument`, the input of a language model, every kept mention is a single integer token:
the entity's number by first appearance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

Token = str | int
"""A word, or an entity's number (1, 2, ... by first appearance in the document)."""


class Span(NamedTuple):
    """Words of a sentence, or characters of a text, from `start` to `end` (exclusive)."""

    start: int
    end: int
    entity: int | None = None
    """The entity that the words mention, if any."""


class Mention(NamedTuple):
    """Words `start` to `end` (exclusive) of one sentence of a document, counted from 0."""

    sentence: int
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A text with coreference chains."""

    name: str
    sentences: Sequence[Sequence[str]]
    chains: Sequence[Sequence[Mention]] = ()
    named_entities: Sequence[Mention] = ()
    """Mentions tagged as named entities, inside or outside chains."""
    part: str = ""
    """The part's name if the corpus divides documents; all parts go into the same split."""
    source: str = ""
    """The file it was read from, relative to the corpus; may determine the split."""
    text: str = ""
    """The original text, if it was plain text."""
    spans: Sequence[Sequence[Span]] = ()
    """The characters of each word in `text`."""
    paragraphs: Sequence[int] = ()
    """The paragraph of each sentence, from 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnonymizedDocument:
    """A text in which each mention is replaced by its entity's number."""

    name: str
    sentences: Sequence[Sequence[Token]]
    surfaces: Sequence[Sequence[str]] = ()
    """The original words of every entity token, in reading order."""
    ideal: Sequence[Sequence[float]] | None = None
    """Log-probability (nats) of each token and each sentence end under the true distribution of
    the text, if that is known (storyworld)."""

    @property
    def entities(self) -> int:
        """The number of different entities."""
        return len({token for s in self.sentences for token in s if isinstance(token, int)})

    @property
    def largest(self) -> int:
        """The largest entity number."""
        return max((t for s in self.sentences for t in s if isinstance(t, int)), default=0)


def are_sentences(value: object, kinds: tuple[type, ...]) -> bool:
    """Whether a JSON value is a list of lists of tokens of these types."""
    return isinstance(value, list) and all(
        isinstance(sentence, list) and all(type(token) in kinds for token in sentence)
        for sentence in value
    )


def check(document: Document) -> None:
    """Raise ValueError if a document is empty or a mention lies outside its sentence."""
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
