"""Spans from brackets: `(12` opens one, `12)` closes it, across the words of a sentence."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from dntm.corpus.document import Mention


@dataclass
class Brackets:
    """Collects the mentions of a document from the brackets of its coreference column.

    Errors are plain ValueErrors: the reader adds file and line.
    """

    allow_crossing: bool
    chains: dict[str, list[Mention]] = field(default_factory=dict)
    _open: list[tuple[str, int]] = field(default_factory=list)

    def open(self, chain: str, word: int) -> None:
        """A mention of `chain` begins with this word."""
        self.chains.setdefault(chain, [])
        self._open.append((chain, word))

    def close(self, chains: Iterable[str], sentence: int, end: int) -> None:
        """The innermost open mentions of these chains end before word `end`, in any order."""
        waiting = Counter(chains)
        crossed: tuple[str, int] | None = None
        for index in range(len(self._open) - 1, -1, -1):
            chain, start = self._open[index]
            if not waiting[chain]:
                crossed = crossed or (chain, start)
                continue
            if crossed and crossed[1] > start and not self.allow_crossing:
                raise ValueError(
                    f"'{chain})' crosses '({crossed[0]}', expected '{crossed[0]})' first"
                )
            waiting[chain] -= 1
            del self._open[index]
            if end > start:
                self.chains[chain].append(Mention(sentence, start, end))
        for chain in +waiting:
            raise ValueError(f"'{chain})' closes a mention that is not open, expected '({chain}'")

    def end_sentence(self) -> None:
        """Every mention must end in the sentence in which it began."""
        if self._open:
            chain = self._open[-1][0]
            raise ValueError(f"'({chain}' is still open at the sentence's end, expected '{chain})'")

    def sorted_chains(self) -> list[list[Mention]]:
        """The chains in the order in which they opened, mentions in reading order."""
        return [sorted(mentions) for mentions in self.chains.values() if mentions]
