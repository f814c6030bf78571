"""Input files, optionally gzipped, divided into one block of raw lines per document.

A reader has two steps: the first divides a file into blocks, the second parses a block. A malformed
document can then be skipped, and reading continues with the next block.
"""

import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

LONGEST_PROBLEM = 400
"""Maximum length of an error's description."""
LONGEST_LINE = 1 << 28
"""Maximum bytes of a line; longer lines are refused before they are read into memory."""


class InputError(ValueError):
    """An error in an input file, with path and line; long descriptions are shortened."""

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        if len(problem) > LONGEST_PROBLEM:
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

    def error(self, line: int | None, problem: str) -> InputError:
        """An error at a line of this block's file."""
        return InputError(self.path, line, problem)


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The raw lines of an optionally gzipped file, numbered from 1, without byte order mark."""
    number = 0
    try:
        with path.open("rb") as plain, _decompressed(plain) as handle:
            while line := handle.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise InputError(
                        str(path), number, f"a line of more than {LONGEST_LINE:,} bytes"
                    )
                yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            str(path), number + 1, f"broken gzip ({error}), expected a complete gzip file"
        ) from None
    except OSError as error:
        raise InputError(str(path), None, f"cannot be read: {error.strerror or error}") from None


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of an optionally gzipped text file, without line ends."""
    return _decoded(numbered_lines(path), str(path))


def _decoded(lines: Iterable[tuple[int, bytes]], path: str) -> Iterator[tuple[int, str]]:
    for number, raw in lines:
        try:
            yield number, raw.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(
                path,
                number,
                f"byte 0x{raw[error.start]:02x} at column {error.start + 1} "
                "is not UTF-8, expected UTF-8 text",
            ) from None


def _decompressed(handle: io.BufferedReader) -> io.BufferedIOBase:
    return gzip.open(handle) if handle.peek(2).startswith(b"\x1f\x8b") else handle


def _raise(error: OSError) -> None:
    raise InputError(str(error.filename), None, f"cannot be read: {error.strerror}")


def files_below(source: Path) -> list[Path]:
    """The file itself, or all files below a folder, sorted; hidden files are ignored."""
    if not source.exists():
        raise InputError(
            str(source), None, "no such file or folder (dntm data list lists known corpora)"
        )
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
        raise InputError(str(source), None, "the folder contains no file")
    return found
