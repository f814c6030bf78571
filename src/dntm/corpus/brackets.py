"""Spans from brackets: `(12` opens one, `12)` closes it, across the words of a sentence."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from dntm.corpus.document import Mention

Bracket = tuple[str, str]
"""The chain that a bracket opens and the one it closes; empty where it does not."""


@dataclass
class Brackets:
    """Collects the mentions of a document from the brackets of its coreference column.

    Errors are plain ValueErrors: the reader adds file and line.
    """

    allow_crossing: bool
    chains: dict[str, list[Mention]] = field(default_factory=dict)
    """The spans of each chain; one that holds no word (it stands on an empty node) ends where it
    begins."""
    _open: list[tuple[str, int]] = field(default_factory=list)

    def read(self, brackets: Iterable[Bracket], sentence: int, start: int, end: int) -> None:
        """Read the brackets of one word in the order in which they are written.

        A mention that opens here begins with word `start`; one that closes ends before `end`.
        """
        closed: list[tuple[str, int]] = []
        for opening, closing in brackets:
            if opening:
                self.chains.setdefault(opening, [])
                self._open.append((opening, start))
            if closing:
                begin = self._close(closing)
                self.chains[closing].append(Mention(sentence, begin, end))
                closed.append((closing, begin))
        for chain, begin in closed:
            crossed = next((name for name, other in self._open if other > begin), None)
            if crossed and not self.allow_crossing:
                raise ValueError(f"'{chain})' crosses '({crossed}', expected '{crossed})' first")

    def _close(self, chain: str) -> int:
        """Take the innermost open mention of `chain` off and return where it begins."""
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index][0] == chain:
                return self._open.pop(index)[1]
        raise ValueError(f"'{chain})' closes a mention that is not open, expected '({chain}'")

    def end_sentence(self) -> None:
        """Every mention must end in the sentence in which it began."""
        if self._open:
            chain = self._open[-1][0]
            raise ValueError(f"'({chain}' is still open at the sentence's end, expected '{chain})'")


def split_brackets(cell: str, pattern: re.Pattern[str], example: str) -> list[Bracket]:
    """Cut a cell into brackets by a pattern with the groups `single`, `open` and `close`."""
    found = list(pattern.finditer(cell))
    if "".join(match[0] for match in found) != cell:
        raise ValueError(f"brackets {cell!r}, expected such as {example!r}")
    return [
        (match["open"] or match["single"] or "", match["close"] or match["single"] or "")
        for match in found
    ]
