"""Corpus formats: which files of a source are read, in which format, one document at a time.

JSON lines hold one document per line, as coreference systems exchange them: "sentences":
[["Mary", ...], ...], a name under "doc_key", "doc_id" or "id", and chains in one of two forms:

    "clusters":          [[[3, 4], ...], ...]         offsets in the document, end included
    "mention_clusters":  [[[0, 3, 5], ...], ...]      sentence, start, end excluded (PreCo)

Sentences without words are removed: PreCo separates paragraphs by a sentence of one space.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import accumulate, compress
from pathlib import Path
from typing import Any, Literal

from dntm.corpus import conll, text
from dntm.corpus.document import (
    Block,
    Document,
    EmptyInputError,
    InputError,
    Mention,
    are_sentences,
    check,
    files_below,
    numbered_lines,
)
from dntm.settings import parse_json

Format = Literal["conll2012", "conllu", "json", "text", "inline"]
ANNOTATED: tuple[Format, ...] = ("conll2012", "conllu", "json")

_BY_NAME: tuple[tuple[re.Pattern[str], Format], ...] = (
    (re.compile(r"(_conll|\.conll)$"), "conll2012"),
    (re.compile(r"\.conllu$"), "conllu"),
    (re.compile(r"\.(jsonl|jsonlines|json|ndjson)$"), "json"),
    (re.compile(r"\.(txt|text)$"), "text"),
)


def files_and_format(
    source: Path, given: Format | None, *, option: str = "--format"
) -> tuple[list[Path], Format]:
    """The files of a source that belong to the corpus, and their format.

    In a folder, plain text is ignored if there are annotated files (such as a README.txt), and
    OntoNotes' `*_gold_conll` is preferred to automatic annotation. If the format cannot be
    recognized, the error names the `option` that sets it.
    """
    files = files_below(source)
    if source.is_file():
        return files, given or _inline(recognize(source), files)
    by_format: dict[Format, list[Path]] = {}
    for path in files:
        if known := _format_of_name(path):
            by_format.setdefault(known, []).append(path)
    chosen = given or _only_format(source, by_format, option)
    named: Format = "text" if chosen == "inline" else chosen
    found = by_format.get(named, files)
    gold = [path for path in found if "gold_conll" in path.name]
    return gold or found, chosen


def _inline(recognized: Format, files: list[Path]) -> Format:
    """Plain text is inline if all of its files clearly have inline markup."""
    inline = recognized == "text" and all(map(is_inline, files))
    return "inline" if inline else recognized


def _only_format(source: Path, by_format: dict[Format, list[Path]], option: str) -> Format:
    annotated = [known for known in ANNOTATED if known in by_format]
    if len(annotated) > 1:
        problem = f"files in several formats ({', '.join(annotated)}): pass {option}"
        raise InputError(source, None, problem)
    if not by_format:
        problem = "no file named *_conll, *.conll, *.conllu, *.jsonl or *.txt"
        raise InputError(source, None, f"{problem}: pass {option}")
    return annotated[0] if annotated else _inline("text", by_format["text"])


def recognize(path: Path) -> Format:
    """The format of a file by its name, else by its first lines."""
    if known := _format_of_name(path):
        return known
    if re.search(r"\.(csv|tsv)(\.gz)?$", path.name.lower()):
        raise InputError(str(path), None, f"not a text; {_TABLE}")
    for number, line in numbered_lines(path):
        if line.startswith(b"#begin document"):
            return "conll2012"
        if line.startswith((b"# newdoc", b"# global.Entity", b"# sent_id")):
            return "conllu"
        if line.startswith(b"{"):
            return "json"
        if line.strip() and (not line.startswith(b"#") or number > 20):
            return "conllu" if line.count(b"\t") == 9 else "text"
    return "text"


_TABLE = "for a table of texts, use dntm score --text-column COLUMN"
_INLINE = re.compile(rb"\[\d{1,4}\][.,;:!?]?")


def is_inline(path: Path) -> bool:
    """Whether a plain text clearly has inline markup, such as `[1] saw [2]. Then [1] left`.

    Citations look alike. So at least every thirtieth word must be a mark, some number must be
    repeated, and some line must begin with a mark.
    """
    words: list[bytes] = []
    begins = False
    with suppress(InputError):
        for _, line in numbered_lines(path):
            found = line.split()
            begins |= bool(found) and _INLINE.fullmatch(found[0]) is not None
            words += found
            if len(words) > _SAMPLE:
                break
    marks = [word.rstrip(b".,;:!?") for word in words if _INLINE.fullmatch(word)]
    return begins and len(marks) * 30 >= len(words) and len(set(marks)) < len(marks)


_SAMPLE = 5_000
"""Words of a text that are examined."""


def has_chains(path: Path, format: Format) -> bool:  # noqa: A002
    """Whether a file annotates chains, even if some of its documents have none."""
    if format == "conllu":
        with suppress(InputError):
            return any(b"Entity=" in line for _, line in numbered_lines(path))
    return format in (*ANNOTATED, "inline")


def _format_of_name(path: Path) -> Format | None:
    name = path.name.lower().removesuffix(".gz")
    return next((known for pattern, known in _BY_NAME if pattern.search(name)), None)


def read_documents(
    source: Path,
    files: list[Path],
    format: Format,  # noqa: A002
    documents: text.Documents = "file",
    skipped: list[str] | None = None,
    *,
    empty: list[str] | None = None,
    called: str | None = None,
    spans: bool = True,
    whole: bool = True,
) -> Iterator[Document]:
    """Read the documents of the files, one at a time.

    A malformed document raises InputError; if `skipped` is given, it is skipped and the error is
    appended there. `empty` does the same for documents without a word only. Errors name the file,
    or `called` if given. Without `spans`, plain text is read faster, without word positions. If not
    `whole`, only the first sentence of a plain text is parsed.
    """
    inline = format == "inline"
    parse_text = partial(text.parse, documents=documents, inline=inline, spans=spans, whole=whole)
    blocks, parse = _READERS.get(format, (partial(text.blocks, documents=documents), parse_text))
    for path in files:
        relative = path.relative_to(source).as_posix() if path != source else path.name
        label = re.sub(r"\.(txt|text|conllu|jsonl|json)?(\.gz)?$", "", relative)
        found = False
        try:
            for block in blocks(path):
                found = True
                named = replace(block, label=label, path=called or block.path)
                try:
                    document = parse(named)
                    check(document)
                except InputError as error:
                    _note(error, skipped, empty)
                except ValueError as error:
                    _note(InputError(named.path, named.first_line, str(error)), skipped, empty)
                else:
                    yield replace(document, source=relative)
            if not found:
                raise EmptyInputError(called or path, None, "an empty file, expected documents")
        except InputError as error:
            _note(error, skipped, empty)


def _note(error: InputError, skipped: list[str] | None, empty: list[str] | None) -> None:
    noted = skipped if skipped is not None or not isinstance(error, EmptyInputError) else empty
    if noted is None:
        raise error
    noted.append(str(error))


_NAMES = ("doc_key", "doc_id", "id", "name")


def _json_blocks(path: Path) -> Iterator[Block]:
    for number, line in numbered_lines(path):
        if line.strip():
            yield Block(str(path), number, [line])


def _json_document(block: Block) -> Document:
    number, line = next(block.text_lines())
    try:
        fields = parse_json(line)
    except ValueError as error:
        raise ValueError(f"not JSON ({error}), expected an object") from None
    if not isinstance(fields, dict) or not are_sentences(fields.get("sentences"), (str,)):
        raise ValueError(f'expected an object with "sentences", a list of lists of words; {_TABLE}')
    sentences: list[list[str]] = fields["sentences"]
    if "mention_clusters" in fields:
        chains = _json_chains(fields["mention_clusters"], "mention_clusters", 3)
        mentions = [[Mention(*span) for span in chain] for chain in chains]
    elif "clusters" in fields:
        chains = _json_chains(fields["clusters"], "clusters", 2)
        starts = list(accumulate((len(sentence) for sentence in sentences), initial=0))
        mentions = [[_in_sentence(span, starts) for span in chain] for chain in chains]
    else:
        raise ValueError('no chains, expected "clusters" or "mention_clusters"')
    fallback = f"{block.label or Path(block.path).name}:{number}"
    name = str(next((fields[key] for key in _NAMES if fields.get(key) is not None), fallback))
    check(Document(name=name, sentences=sentences, chains=mentions))
    has_words = [any(word.strip() for word in sentence) for sentence in sentences]
    renumbered = list(accumulate(has_words, initial=0))
    moved = [
        sorted(mention._replace(sentence=renumbered[mention.sentence]) for mention in chain)
        for chain in mentions
        if chain
    ]
    return Document(name=name, sentences=list(compress(sentences, has_words)), chains=moved)


def _json_chains(value: Any, key: str, width: int) -> list[list[list[int]]]:
    if not isinstance(value, list) or not all(isinstance(chain, list) for chain in value):
        raise ValueError(f'"{key}" must be a list of lists of mentions')
    for span in (span for chain in value for span in chain):
        if not (
            isinstance(span, list)
            and len(span) == width
            and all(type(number) is int for number in span)
        ):
            raise ValueError(f"mention {span!r} in {key!r}, expected {width} whole numbers")
    return value


def _in_sentence(span: list[int], starts: list[int]) -> Mention:
    first, last = span
    if not 0 <= first <= last < starts[-1]:
        raise ValueError(f"mention {span!r}, expected offsets from 0 to {starts[-1] - 1}")
    sentence = bisect_right(starts, first) - 1
    return Mention(sentence, first - starts[sentence], last + 1 - starts[sentence])


_READERS: dict[Format, tuple[Callable[[Path], Iterator[Block]], Callable[[Block], Document]]] = {
    "conll2012": (conll.blocks_2012, conll.parse_2012),
    "conllu": (conll.blocks_u, conll.parse_u),
    "json": (_json_blocks, _json_document),
}
"""How a file is divided into blocks, and how a block is read."""
