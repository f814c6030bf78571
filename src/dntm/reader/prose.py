"""Prose: tokens back into text as people write it."""

from collections.abc import Iterable

_CLOSING = frozenset({".", ",", ";", ":", "!", "?", "...", "…", ")", "]", "}", "”", "»", "%"})
_OPENING = frozenset({"(", "[", "{", "“", "«", "$", "£", "€", "#"})
_CLITICS = tuple(f"{mark}{end}" for mark in "'’" for end in ("s", "re", "ve", "ll", "d", "m"))
_NOT = ("n't", "n’t")


def as_prose(words: Iterable[str]) -> str:
    """Join words: no space before a point or a clitic, none inside quotes and brackets."""
    text, quoted, glued = "", False, True
    for word in words:
        closes = word in _CLOSING or word.lower() in (*_CLITICS, *_NOT) or (word == '"' and quoted)
        text += word if closes or glued else f" {word}"
        glued = word in _OPENING or (word == '"' and not quoted)
        quoted ^= word == '"'
    return text
