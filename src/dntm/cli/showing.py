"""A reading as the terminal shows it, as one HTML page, and as a table of tokens.

In colour, each entity has its own and the shade behind a word is its surprisal; without colour an
entity is followed by its number. Characters that would steer the terminal are shown as a blank
mark instead. On the page a text is data and never markup: every word is escaped, and the page
forbids scripts and all other content by its policy.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from dntm.cli.runs import printable
from dntm.reader.reading import (
    COLUMNS,
    EntityReading,
    Neighbour,
    Reading,
    SentenceReading,
    TokenReading,
    Unit,
    in_bits,
)
from dntm.reader.text import as_prose, spaces_before

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


def _painted(text: str, entity: int, *, colour: bool) -> str:
    return f"\x1b[1;{_colour(entity)}m{text}\x1b[0m" if colour else text


def _colour(entity: int) -> int:
    return _COLOURS[(entity - 1) % len(_COLOURS)]


def _times(state: EntityReading) -> str:
    return "mentioned once" if state.occurrence == 1 else f"mentioned {state.occurrence} times"


def _state(state: EntityReading) -> str:
    sure = _how_sure(state)
    return f"{_list(state.taken_for or state.input_words)}{f' ({sure})' if sure else ''}"


def _how_sure(state: EntityReading) -> str:
    from dntm.reader.meaning import how_sure  # it needs torch, which tables do not

    return how_sure(state.sure)


def _list(words: Sequence[Neighbour]) -> str:
    return printable(", ".join(neighbour.word for neighbour in words[:_SHOWN]))


def _totals(reading: Reading) -> Iterator[str]:
    yield f"{reading.unit + ' a token':<16}{'tokens':>8}{'dynamic':>10}{'static':>10}"
    for group, total in reading.totals().items():
        count = total["tokens"]
        if count:
            means = (total[name] / count for name in ("surprisal", "static_surprisal"))
            yield f"{group:<16}{count:>8}" + "".join(f"{mean:>10.3f}" for mean in means)


_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark }
body { font: 1.05rem/1.7 Georgia, serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
h1, h2, table, .key { font-family: system-ui, sans-serif }
h1 { font-size: 1.3rem } h2 { font-size: 1rem; margin-bottom: .2rem }
table { display: block; overflow-x: auto }
body { overflow-wrap: anywhere }
.w { border-radius: .2em; padding: .1em .15em }
.e { font-weight: bold; border-bottom: .15em solid var(--colour) }
table { border-collapse: collapse; font-size: .85rem; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .15rem .6rem .15rem 0 }
td.n { text-align: right; font-variant-numeric: tabular-nums }
.key { font-size: .8rem }
"""
_GOLDEN = 137.508
"""Degrees between the hues of one entity and the next, so that neighbours differ."""
_DARKEST = 18.0
"""Bits at which a word has the full shade."""


def page(reading: Reading) -> str:
    """The whole page."""
    title = escape(reading.name)
    return "\n".join(
        (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>",
            f"<h1>{title}</h1>",
            '<p class="key">Shade: how surprising a word is. Entities are underlined.</p>',
            *(f"<p>{_html_sentence(s.tokens, reading.unit)}</p>" for s in reading.sentences),
            *(_html_entity(reading, entity) for entity in reading.entities),
            _html_totals(reading),
            *(f"<p>{escape(note)}</p>" for note in reading.notes),
            "</main>\n</body>\n</html>\n",
        )
    )


def _html_sentence(tokens: Sequence[TokenReading], unit: Unit) -> str:
    words = [token for token in tokens if not token.end]
    spaces = spaces_before(token.word for token in words)
    return "".join(s + _html_token(token, unit) for s, token in zip(spaces, words, strict=True))


def _html_token(token: TokenReading, unit: Unit) -> str:
    bits = in_bits(token.surprisal, unit)
    shade = f"background: rgb(255 140 0 / {min(max(bits / _DARKEST, 0), 1) * 0.6:.2f})"
    colour = f"; --colour: {_html_colour(token.entity)}" if token.entity else ""
    told = f"{token.surprisal:.2f} {unit}, static {token.static_surprisal:.2f}, {token.group}"
    name = "w e" if token.entity else "w"
    return (
        f'<span class="{name}" style="{shade}{colour}" title="{told}">{escape(token.word)}</span>'
    )


def _html_colour(entity: int) -> str:
    return f"hsl({(entity * _GOLDEN) % 360:.0f} 70% 45%)"


def _html_entity(reading: Reading, entity: int) -> str:
    rows = "\n".join(_html_state(index, state) for index, state in reading.trail(entity))
    name = escape(reading.entities[entity])
    return (
        f'<h2><span class="e" style="--colour: {_html_colour(entity)}">{name}</span></h2>\n'
        "<table><thead><tr><th>sentence</th><th>taken for</th><th>how sure</th>"
        f"<th>predicted like</th></tr></thead>\n<tbody>\n{rows}\n</tbody></table>"
    )


def _html_state(index: int, state: EntityReading) -> str:
    taken, like = map(_html_words, (state.taken_for or state.input_words, state.output_words))
    cells = "".join(f"<td>{cell}</td>" for cell in (taken, _how_sure(state), like))
    return f'<tr><td class="n">{index + 1}</td>{cells}</tr>'


def _html_words(words: Sequence[Neighbour]) -> str:
    return ", ".join(escape(neighbour.word) for neighbour in words[:6])


def _html_totals(reading: Reading) -> str:
    return (
        f"<h2>{reading.unit} a token</h2>\n<table><thead><tr><th>tokens</th><th>count</th>"
        f"<th>dynamic</th><th>static</th></tr></thead>\n<tbody>\n{''.join(_html_means(reading))}"
        "</tbody></table>"
    )


def _html_means(reading: Reading) -> Iterator[str]:
    for group, total in reading.totals().items():
        if count := total["tokens"]:
            means = (total[name] / count for name in ("surprisal", "static_surprisal"))
            cells = "".join(f'<td class="n">{mean:.3f}</td>' for mean in means)
            yield f'<tr><td>{group}</td><td class="n">{count}</td>{cells}</tr>\n'


def table_lines(readings: Iterable[Reading]) -> Iterator[str]:
    """Lines of tab-separated values, the header first."""
    yield "\t".join(COLUMNS)
    for reading in readings:
        yield from map(tsv_line, reading.rows())


def tsv_line(row: Sequence[object]) -> str:
    """A row with tabs between, quoted where a word needs it; what is not known is empty."""
    buffer = io.StringIO()
    cells = (f"{value:.6f}" if isinstance(value, float) else value for value in row)
    csv.writer(buffer, delimiter="\t", lineterminator="").writerow(cells)
    return buffer.getvalue()


def json_line(columns: Sequence[str], row: Sequence[object]) -> str:
    """A row as a JSON object; what is not known is null."""
    return json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False)
