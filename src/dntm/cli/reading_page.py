"""A reading as one self-contained HTML page: no script, nothing from elsewhere.

A text is data and never markup: every word is escaped, and the page forbids scripts and all other
content by its policy.
"""

from collections.abc import Iterator, Sequence
from html import escape

from dntm.reader.prose import spaces_before
from dntm.reader.reading import EntityReading, Neighbour, Reading, TokenReading
from dntm.reader.units import Unit, in_bits

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
            *(f"<p>{_sentence(s.tokens, reading.unit)}</p>" for s in reading.sentences),
            *(_entity(reading, entity) for entity in reading.entities),
            _totals(reading),
            *(f"<p>{escape(note)}</p>" for note in reading.notes),
            "</main>\n</body>\n</html>\n",
        )
    )


def _sentence(tokens: Sequence[TokenReading], unit: Unit) -> str:
    words = [token for token in tokens if not token.end]
    spaces = spaces_before(token.word for token in words)
    return "".join(s + _token(token, unit) for s, token in zip(spaces, words, strict=True))


def _token(token: TokenReading, unit: Unit) -> str:
    bits = in_bits(token.surprisal, unit)
    shade = f"background: rgb(255 140 0 / {min(max(bits / _DARKEST, 0), 1) * 0.6:.2f})"
    colour = f"; --colour: {_colour(token.entity)}" if token.entity else ""
    told = f"{token.surprisal:.2f} {unit}, static {token.static_surprisal:.2f}, {token.group}"
    name = "w e" if token.entity else "w"
    return (
        f'<span class="{name}" style="{shade}{colour}" title="{told}">{escape(token.word)}</span>'
    )


def _colour(entity: int) -> str:
    return f"hsl({(entity * _GOLDEN) % 360:.0f} 70% 45%)"


def _entity(reading: Reading, entity: int) -> str:
    rows = "\n".join(_state(index, state) for index, state in reading.trail(entity))
    name = escape(reading.entities[entity])
    return (
        f'<h2><span class="e" style="--colour: {_colour(entity)}">{name}</span></h2>\n'
        "<table><thead><tr><th>sentence</th><th>like</th><th>predicted like</th><th>nearer</th>"
        f"<th>farther</th></tr></thead>\n<tbody>\n{rows}\n</tbody></table>"
    )


def _state(index: int, state: EntityReading) -> str:
    lists = (state.input_words, state.output_words, state.gained, state.lost)
    cells = "".join(f"<td>{_words(words)}</td>" for words in lists)
    return f'<tr><td class="n">{index + 1}</td>{cells}</tr>'


def _words(words: Sequence[Neighbour]) -> str:
    return ", ".join(escape(neighbour.word) for neighbour in words[:6])


def _totals(reading: Reading) -> str:
    return (
        f"<h2>{reading.unit} a token</h2>\n<table><thead><tr><th>tokens</th><th>count</th>"
        f"<th>dynamic</th><th>static</th></tr></thead>\n<tbody>\n{''.join(_means(reading))}"
        "</tbody></table>"
    )


def _means(reading: Reading) -> Iterator[str]:
    for group, total in reading.totals().items():
        if count := total["tokens"]:
            means = (total[name] / count for name in ("surprisal", "static_surprisal"))
            cells = "".join(f'<td class="n">{mean:.3f}</td>' for mean in means)
            yield f'<tr><td>{group}</td><td class="n">{count}</td>{cells}</tr>\n'
