"""Prose: tokens back into text as people write it."""

from collections.abc import Iterable, Iterator

_CLOSING = frozenset({".", ",", ";", ":", "!", "?", "...", "…", ")", "]", "}", "”", "»", "%"})
_OPENING = frozenset({"(", "[", "{", "“", "«", "$", "£", "€", "#"})
_CLITICS = tuple(f"{mark}{end}" for mark in "'’" for end in ("s", "re", "ve", "ll", "d", "m"))
_NOT = ("n't", "n’t")


def as_prose(words: Iterable[str]) -> str:
    """Join words as text has them."""
    written = list(words)
    return "".join(s + word for s, word in zip(spaces_before(written), written, strict=True))


def spaces_before(words: Iterable[str]) -> Iterator[str]:
    """A space or nothing for each word.

    Nothing before a point or a clitic, nor inside quotes and brackets.
    """
    quoted, glued = False, True
    for word in words:
        closes = word in _CLOSING or word.lower() in (*_CLITICS, *_NOT) or (word == '"' and quoted)
        yield "" if closes or glued else " "
        glued = word in _OPENING or (word == '"' and not quoted)
        quoted ^= word == '"'
