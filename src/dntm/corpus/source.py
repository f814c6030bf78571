"""Where documents come from: files, plain or gzip, cut into one block of raw lines a document.

A reader has two halves. The first cuts a file into blocks, one a document, looking at little
more than where documents begin; the second parses a block. So a malformed document can be left
out and the next one is still read.
"""

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LONGEST_PROBLEM = 400
"""Characters that are told of a problem at most."""


class InputError(ValueError):
    """What is wrong with an input file, and where; what is told of its content is cut."""

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        if len(problem) > LONGEST_PROBLEM:
            half = LONGEST_PROBLEM // 2
            problem = f"{problem[:half]} ... {problem[-half:]}"
        super().__init__(f"{path}, line {line}: {problem}" if line else f"{path}: {problem}")


class EmptyInputError(InputError):
    """A file or a document without a word."""


LONGEST_LINE = 16 << 20
"""Bytes of a line at most, unless told otherwise."""
LINES = 64
"""A document of an annotated format may have so many times the bytes of the longest line."""


@dataclass(frozen=True, slots=True)
class Block:
    """The raw lines of one document and where they stand."""

    path: str
    first_line: int
    lines: list[bytes]
    label: str = ""
    """The file's name below the corpus, without its suffix: names documents that have no name."""
    document: int = 0
    """The line at which its document begins, where that is not the first line."""
    part: int = 0
    """Which piece of a document too large to be read as one, from 1; 0: all of it."""
    header: str = ""
    """What the file said earlier that holds for this document too."""

    def text_lines(self) -> Iterator[tuple[int, str]]:
        """Line numbers and decoded lines, without their ends."""
        for number, raw in enumerate(self.lines, self.first_line):
            try:
                line = raw.decode()
            except UnicodeDecodeError as error:
                raise self.error(
                    number,
                    f"byte 0x{raw[error.start]:02x} at column {error.start + 1} "
                    "is not UTF-8, expected UTF-8 text",
                ) from None
            yield number, line.rstrip("\r\n")

    def error(self, line: int | None, problem: str) -> InputError:
        """An error at a line of this block's file."""
        return InputError(self.path, line, problem)


def numbered_lines(path: Path, longest: int = LONGEST_LINE) -> Iterator[tuple[int, bytes]]:
    """The raw lines of a plain or gzip file, from 1, the byte order mark taken off.

    One of more than `longest` bytes is an error before it is read.
    """
    number = 0
    try:
        with path.open("rb") as plain, _unpacked(plain) as handle:
            while line := handle.readline(longest + 1):
                number += 1
                if len(line) > longest:
                    raise InputError(
                        str(path),
                        number,
                        f"a line of more than {longest:,} bytes: pass --longest-line to allow it",
                    )
                yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            str(path), number + 1, f"broken gzip ({error}), expected a complete gzip file"
        ) from None
    except OSError as error:
        raise InputError(str(path), None, f"cannot be read: {error.strerror or error}") from None


def check_size(path: Path, first_line: int, size: int, longest: int) -> None:
    """Raise InputError where a document has more bytes than one may have."""
    if size > LINES * longest:
        raise InputError(
            str(path),
            first_line,
            f"a document of more than {LINES * longest:,} bytes: pass --longest-line to allow it",
        )


def _unpacked(handle: io.BufferedReader) -> io.BufferedIOBase:
    return gzip.open(handle) if handle.peek(2).startswith(b"\x1f\x8b") else handle


def _raise(error: OSError) -> None:
    raise InputError(str(error.filename), None, f"cannot be read: {error.strerror}")


def files_below(source: Path) -> list[Path]:
    """The file itself, or every file of a folder tree in a fixed order, hidden ones left out."""
    if not source.exists():
        raise InputError(str(source), None, "no such file or folder (dntm data list names corpora)")
    if not source.is_dir():
        return [source]
    found: list[Path] = []
    for folder, below, files in os.walk(source, onerror=_raise):
        if "dataset.json" in files:  # a dataset built inside its source
            below.clear()
            continue
        below[:] = [name for name in below if not name.startswith(".")]
        found += [Path(folder) / name for name in files if not name.startswith(".")]
    found.sort()
    if not found:
        raise InputError(str(source), None, "the folder holds no file")
    return found
