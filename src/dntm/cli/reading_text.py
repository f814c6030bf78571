"""A reading as the terminal shows it: the text, then what each entity has come to mean.

In colour, each entity has its own and the shade behind a word is its surprisal; without colour an
entity is followed by its number. Characters that would steer the terminal are shown as a blank
mark instead.
"""

from collections.abc import Iterator, Sequence

from dntm.reader.prose import as_prose
from dntm.reader.reading import EntityReading, Neighbour, Reading, SentenceReading, TokenReading
from dntm.reader.units import Unit, in_bits

_COLOURS = (31, 32, 33, 34, 35, 36, 91, 92, 93, 94, 95, 96)
_SHADES = (None, 233, 235, 237, 239, 241)
"""256-colour greys behind a word, from expected to surprising."""
_STEP = 3.0
"""Bits from one shade to the next."""
_SHOWN = 5
"""Words of each list."""


def lines(reading: Reading, *, colour: bool) -> Iterator[str]:
    """The whole reading, line by line."""
    for sentence in reading.sentences:
        yield _sentence(sentence, reading.unit, colour=colour)
    for entity, name in reading.entities.items():
        trail = reading.trail(entity)
        yield ""
        title = _painted(f"{printable(name)} [{entity}]", entity, colour=colour)
        yield f"{title}, {_times(trail[-1][1])}"
        for index, state in trail:
            yield f"  after sentence {index + 1:<4} {_state(state)}"
    yield ""
    yield from _totals(reading)
    for note in reading.notes:
        yield f"note: {note}"


def _sentence(sentence: SentenceReading, unit: Unit, *, colour: bool) -> str:
    words = [t for t in sentence.tokens if not t.end]
    if colour:
        return " ".join(_shaded(token, in_bits(token.surprisal, unit)) for token in words)
    shown = (f"{t.word} [{t.entity}]" if t.entity else t.word for t in words)
    return printable(as_prose(shown))


def _shaded(token: TokenReading, bits: float) -> str:
    shade = _SHADES[min(int(bits / _STEP), len(_SHADES) - 1)]
    codes = [] if shade is None else [f"48;5;{shade};38;5;255"]
    if token.entity:
        codes.append(f"1;{_colour(token.entity)}")
    word = printable(token.word)
    return f"\x1b[{';'.join(codes)}m{word}\x1b[0m" if codes else word


def printable(text: str) -> str:
    """The text without characters that would steer the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _painted(text: str, entity: int, *, colour: bool) -> str:
    return f"\x1b[1;{_colour(entity)}m{text}\x1b[0m" if colour else text


def _colour(entity: int) -> int:
    return _COLOURS[(entity - 1) % len(_COLOURS)]


def _times(state: EntityReading) -> str:
    return "mentioned once" if state.occurrence == 1 else f"mentioned {state.occurrence} times"


def _state(state: EntityReading) -> str:
    return (
        f"like {_list(state.input_words)} | nearer {_list(state.gained) or '-'} "
        f"| farther {_list(state.lost) or '-'}"
    )


def _list(words: Sequence[Neighbour]) -> str:
    return printable(", ".join(neighbour.word for neighbour in words[:_SHOWN]))


def _totals(reading: Reading) -> Iterator[str]:
    yield f"{reading.unit + ' a token':<16}{'tokens':>8}{'dynamic':>10}{'static':>10}"
    for group, total in reading.totals().items():
        count = total["tokens"]
        if count:
            means = (total[name] / count for name in ("surprisal", "static_surprisal"))
            yield f"{group:<16}{count:>8}" + "".join(f"{mean:>10.3f}" for mean in means)
