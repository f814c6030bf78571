"""Documents: the lines of input files, parsed documents, and anonymized documents.

Input files, optionally gzipped, are divided into one `Block` of raw lines per document, and a
reader parses a block. A malformed document can then be skipped, and reading continues with the next
block.

A `Document` has sentences of words and coreference chains over them. Mentions may nest; those that
are kept do not overlap. In an `AnonymizedDocument` (Section 4), the input of a language model, each
kept mention is a single integer token: the entity's number by first appearance.
"""

import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
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


class Gap(NamedTuple):
    """A mention of an anonymized document to predict; sentence and position count from 0."""

    sentence: int
    position: int
    entity: int
    occurrence: int
    """Number of the entity's occurrences so far, this one included."""
    candidates: tuple[int, ...]
    """At least two entities in ascending order, the true one included."""


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
    mentions: Sequence[Sequence[Span]] = ()
    """The mentions that are kept in each sentence, left to right, without overlap
    (`corpus.anonymize`). Their entities are any integers."""

    @property
    def entities(self) -> int:
        """The number of different entities."""
        return len({span.entity for spans in self.mentions for span in spans})

    def words(self) -> Iterator[str]:
        """The words outside all mentions."""
        for sentence, tokens in zip(self.sentences, self.tokens(), strict=True):
            yield from (sentence[span.start] for span in tokens if span.entity is None)

    def tokens(self) -> list[list[Span]]:
        """The words of each token; entities are numbered by first appearance."""
        numbers: dict[int | None, int] = {}
        found: list[list[Span]] = []
        for sentence, mentions in zip(self.sentences, self.mentions, strict=True):
            found.append([])
            place = 0
            for start, end, entity in mentions:
                found[-1] += [Span(w, w + 1) for w in range(place, start)]
                found[-1].append(Span(start, end, numbers.setdefault(entity, len(numbers) + 1)))
                place = end
            found[-1] += [Span(w, w + 1) for w in range(place, len(sentence))]
        return found

    def anonymized(self, *, lower_case: bool) -> "AnonymizedDocument":
        """The text with each mention replaced by its entity's number."""
        tokens = self.tokens()
        spelled = self.sentences
        if lower_case:
            spelled = [[word.lower() for word in sentence] for sentence in self.sentences]
        return AnonymizedDocument(
            name=self.name,
            sentences=[
                [words[start] if entity is None else entity for start, _, entity in spans]
                for words, spans in zip(spelled, tokens, strict=True)
            ],
            surfaces=[
                words[start:end]
                for words, spans in zip(self.sentences, tokens, strict=True)
                for start, end, entity in spans
                if entity is not None
            ],
        )

    def parts(self, max_sentences: int | None) -> Iterator["Document"]:
        """Near-equal parts of at most `max_sentences` sentences (None: the whole document).

        With n sentences there are k = ceil(n / max_sentences) parts, part i from round(i n / k).
        """
        count = len(self.sentences)
        parts = -(-count // max_sentences) if max_sentences else 1
        if parts <= 1:
            yield self
            return
        bounds = [round(i * count / parts) for i in range(parts + 1)]
        for number, (start, end) in enumerate(pairwise(bounds), start=1):
            yield Document(
                name=f"{self.name}/{number}",
                sentences=self.sentences[start:end],
                mentions=self.mentions[start:end],
            )


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

    def words(self) -> Iterator[str]:
        """The words outside all mentions."""
        return (word for s in self.sentences for word in s if isinstance(word, str))

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
            expected = f"expected 0 to {len(lengths) - 1}"
            raise ValueError(f"document {document.name!r}: sentence {sentence}, {expected}")
        if not 0 <= start < end <= lengths[sentence]:
            place = f"document {document.name!r}, sentence {sentence}: words {start} to {end}"
            raise ValueError(f"{place}, expected a mention inside its {lengths[sentence]} words")


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


LONGEST_PROBLEM = 400
"""Maximum length of an error's description."""
LONGEST_LINE = 1 << 28
"""Maximum bytes of a line; longer lines are refused before they are read into memory."""


class InputError(ValueError):
    """An error in an input file, with path and line; long descriptions are shortened."""

    def __init__(self, path: Path | str, line: int | None, problem: str) -> None:
        if len(problem) > LONGEST_PROBLEM:  # the end says what was expected
            half = LONGEST_PROBLEM // 2
            problem = f"{problem[:half]} ... {problem[-half:]}"
        super().__init__(f"{path}, line {line}: {problem}" if line else f"{path}: {problem}")


class EmptyInputError(InputError):
    """A file or document without a word."""


@dataclass(frozen=True, slots=True)
class Block:
    """The raw lines of one document."""

    path: str
    first_line: int
    lines: list[bytes]
    label: str = ""
    """The file's name relative to the corpus, without suffix: names documents without a name."""
    document: int = 0
    """Plain text: the line at which the document begins."""
    part: int = 0
    """Plain text: the number of the part if the document was too large for one block, else 0."""
    header: str = ""
    """CoNLL-U: an earlier `# global.Entity` line of the file."""

    def text_lines(self) -> Iterator[tuple[int, str]]:
        """Line numbers and decoded lines without line ends."""
        return _decoded(enumerate(self.lines, self.first_line), self.path)


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The raw lines of an optionally gzipped file, numbered from 1, without byte order mark."""
    number = 0
    try:
        with path.open("rb") as plain:
            packed = plain.peek(2).startswith(b"\x1f\x8b")
            handle: io.BufferedIOBase = gzip.GzipFile(fileobj=plain) if packed else plain
            while line := handle.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise InputError(path, number, f"a line of more than {LONGEST_LINE:,} bytes")
                yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        problem = f"broken gzip ({error}), expected a complete gzip file"
        raise InputError(path, number + 1, problem) from None
    except OSError as error:
        raise InputError(path, None, f"cannot be read: {error.strerror or error}") from None


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of an optionally gzipped text file, without line ends."""
    return _decoded(numbered_lines(path), str(path))


def _decoded(lines: Iterable[tuple[int, bytes]], path: str) -> Iterator[tuple[int, str]]:
    for number, raw in lines:
        try:
            line = raw.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            place = f"byte 0x{raw[error.start]:02x} at column {error.start + 1}"
            raise InputError(path, number, f"{place} is not UTF-8, expected UTF-8 text") from None
        if "\0" in line:
            raise InputError(path, number, "a NUL byte, expected UTF-8 text")
        yield number, line


def _raise(error: OSError) -> None:
    raise InputError(str(error.filename), None, f"cannot be read: {error.strerror}")


def files_below(source: Path) -> list[Path]:
    """The file itself, or all files below a folder, sorted; hidden files are ignored."""
    if not source.exists():
        problem = "no such file or folder (dntm data list lists known corpora)"
        raise InputError(source, None, problem)
    if not source.is_dir():
        return [source]
    found: list[Path] = []
    for folder, below, files in os.walk(source, onerror=_raise):
        if "dataset.json" in files:  # a dataset that was built inside its source
            below.clear()
            continue
        below[:] = [name for name in below if not name.startswith(".")]
        found += [Path(folder) / name for name in files if not name.startswith(".")]
    found.sort()
    if not found:
        raise InputError(source, None, "the folder contains no file")
    return found
