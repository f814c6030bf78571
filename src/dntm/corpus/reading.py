"""Reading a corpus: which files of a source belong to it, in which format, document by document."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from dntm.corpus import conll2012, conllu, jsonlines, text
from dntm.corpus.document import Document, check
from dntm.corpus.source import Block, InputError, files_below, numbered_lines

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

    In a folder, annotated files come before plain text (a README.txt beside them is not read),
    and OntoNotes' `*_gold_conll` before automatic annotation. Where the format cannot be told,
    the error names the `option` with which the user can give it.
    """
    files = files_below(source)
    if source.is_file():
        return files, given or recognise(source)
    by_format: dict[Format, list[Path]] = {}
    for path in files:
        if known := _format_of_name(path):
            by_format.setdefault(known, []).append(path)
    chosen = given or _only_format(source, by_format, option)
    named: Format = "text" if chosen == "inline" else chosen
    found = by_format.get(named, files)
    gold = [path for path in found if "gold_conll" in path.name]
    return gold or found, chosen


def _only_format(source: Path, by_format: dict[Format, list[Path]], option: str) -> Format:
    annotated = [known for known in ANNOTATED if known in by_format]
    if len(annotated) > 1:
        raise InputError(
            str(source), None, f"files in several formats ({', '.join(annotated)}): pass {option}"
        )
    if not by_format:
        raise InputError(
            str(source),
            None,
            f"no file named *_conll, *.conll, *.conllu, *.jsonl or *.txt: pass {option}",
        )
    return annotated[0] if annotated else "text"


def recognise(path: Path) -> Format:
    """The format of a file by its name or, failing that, its first lines."""
    if known := _format_of_name(path):
        return known
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


def has_chains(path: Path, format: Format) -> bool:  # noqa: A002
    """Whether a file annotates chains, be it that some of its documents have none.

    Of a file that cannot be read the answer does not matter: reading its documents tells why.
    """
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
    called: str | None = None,
) -> Iterator[Document]:
    """Every document of the files, one at a time.

    A malformed one raises InputError, or, where `skipped` is given, is left out and noted there.
    Errors name the file, or what it is `called`.
    """
    blocks, parse = _reader(format, documents)
    for path in files:
        relative = path.relative_to(source).as_posix() if path != source else path.name
        label = re.sub(r"\.(txt|text|conllu|jsonl|json)?(\.gz)?$", "", relative)
        found = False
        try:
            for block in blocks(path):
                found = True
                try:
                    document = parse(replace(block, label=label, path=called or block.path))
                    _check(document, block)
                except InputError as error:
                    _note(error, skipped)
                else:
                    yield replace(document, source=relative)
            if not found:
                raise InputError(called or str(path), None, "an empty file, expected documents")
        except InputError as error:
            _note(error, skipped)


def _reader(
    format: Format,  # noqa: A002
    documents: text.Documents,
) -> tuple[Callable[[Path], Iterator[Block]], Callable[[Block], Document]]:
    if format == "conll2012":
        return conll2012.blocks, conll2012.parse
    if format == "conllu":
        return conllu.blocks, conllu.parse
    if format == "json":
        return jsonlines.blocks, jsonlines.parse
    return (
        partial(text.blocks, documents=documents),
        partial(text.parse, documents=documents, inline=format == "inline"),
    )


def _check(document: Document, block: Block) -> None:
    try:
        check(document)
    except ValueError as error:
        raise block.error(block.first_line, str(error)) from None


def _note(error: InputError, skipped: list[str] | None) -> None:
    if skipped is None:
        raise error
    skipped.append(str(error))
