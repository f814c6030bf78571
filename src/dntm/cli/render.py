"""A reading as text for the terminal, as an HTML page, and as a table of tokens.

In colour, each entity has its own colour and a word's background shade is its surprisal; without
colour an entity is followed by its number. Control characters are replaced.
"""

import csv
import io
import json
from collections.abc import Iterator, Sequence

from dntm.cli.runs import printable
from dntm.reader.reading import EntityReading, Reading, SentenceReading, TokenReading, Unit, in_bits
from dntm.reader.text import as_prose, spaces_before

_COLOURS = (31, 32, 33, 34, 35, 36, 91, 92, 93, 94, 95, 96)
_SHADES = (None, 233, 235, 237, 239, 241)
"""256-colour greys for the background, from expected to surprising."""
_STEP = 3.0
"""Bits from one shade to the next."""
_SHOWN = 5
"""Words per list."""
_SURPRISALS = ("surprisal", "static_surprisal")


def text_lines(reading: Reading, *, colour: bool) -> Iterator[str]:
    """The whole reading, line by line."""
    for sentence in reading.sentences:
        yield _sentence(sentence, reading.unit, colour=colour)
    for entity, name in reading.entities.items():
        trail = reading.trail(entity)
        if not trail:  # it had no slot in an overfull sentence
            continue
        count = trail[-1][1].occurrence
        title = f"{printable(name)} [{entity}]"
        yield ""
        yield (
            f"{_painted(title, f'1;{_colour(entity)}') if colour else title}, "
            f"{'mentioned once' if count == 1 else f'mentioned {count} times'}"
        )
        for index, state in trail:
            yield f"  after sentence {index + 1:<4} {_state(state)}"
    yield ""
    yield f"{reading.unit + ' per token':<16}{'tokens':>8}{'dynamic':>10}{'static':>10}"
    for group, total in reading.totals().items():
        if count := int(total["tokens"]):
            means = (total[name] / count for name in _SURPRISALS)
            yield f"{group:<16}{count:>8}" + "".join(f"{mean:>10.3f}" for mean in means)


def _sentence(sentence: SentenceReading, unit: Unit, *, colour: bool) -> str:
    words = [t for t in sentence.tokens if not t.end]
    if colour:
        return " ".join(_shaded(token, in_bits(token.surprisal, unit)) for token in words)
    return printable(as_prose(f"{t.word} [{t.entity}]" if t.entity else t.word for t in words))


def _shaded(token: TokenReading, bits: float) -> str:
    shade = _SHADES[min(int(bits / _STEP), len(_SHADES) - 1)]
    codes = [] if shade is None else [f"48;5;{shade};38;5;255"]
    if token.entity:
        codes.append(f"1;{_colour(token.entity)}")
    word = printable(token.word)
    return _painted(word, ";".join(codes)) if codes else word


def _painted(text: str, codes: str) -> str:
    return f"\x1b[{codes}m{text}\x1b[0m"


def _colour(entity: int) -> int:
    return _COLOURS[(entity - 1) % len(_COLOURS)]


def _state(state: EntityReading) -> str:
    from dntm.reader.meaning import confidence_label  # it needs torch, which tables do not

    label = confidence_label(state.confidence)
    return f"{printable(', '.join(_words(state)))}{f' ({label})' if label else ''}"


def _words(state: EntityReading) -> list[str]:
    return [near.word for near in (state.predicted_words or state.input_words)[:_SHOWN]]


def html_page(reading: Reading) -> str:
    """The reading as a page that needs no other file."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("dntm.cli"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    entities = [
        {"number": number, "name": name, "states": _html_states(reading, number)}
        for number, name in reading.entities.items()
    ]
    totals = [
        [group, count, *(f"{total[name] / count:.3f}" for name in _SURPRISALS)]
        for group, total in reading.totals().items()
        if (count := int(total["tokens"]))
    ]
    return environment.get_template("reading.html").render(
        reading=reading,
        sentences=[_html_tokens(sentence, reading.unit) for sentence in reading.sentences],
        entities=entities,
        totals=totals,
        # The golden angle: neighbouring entities have different hues.
        color=lambda entity: f"hsl({entity * 137.508 % 360:.0f} 70% 45%)",
    )


def _html_tokens(sentence: SentenceReading, unit: Unit) -> list[dict[str, object]]:
    tokens = [token for token in sentence.tokens if not token.end]
    return [
        {
            "space": space,
            "word": token.word,
            "entity": token.entity,
            "shade": f"{min(in_bits(token.surprisal, unit) / 18, 1) * 0.6:.2f}",
            "title": f"{token.surprisal:.2f} {unit}, static {token.static_surprisal:.2f}",
        }
        for space, token in zip(spaces_before(t.word for t in tokens), tokens, strict=True)
    ]


def _html_states(reading: Reading, entity: int) -> list[dict[str, object]]:
    from dntm.reader.meaning import confidence_label

    return [
        {
            "sentence": index + 1,
            "words": ", ".join(_words(state)),
            "confidence": confidence_label(state.confidence) or "",
        }
        for index, state in reading.trail(entity)
    ]


def tsv_line(row: Sequence[object]) -> str:
    """A row of tab-separated values, quoted if necessary; missing values are empty."""
    buffer = io.StringIO()
    cells = (f"{value:.6f}" if isinstance(value, float) else value for value in row)
    csv.writer(buffer, delimiter="\t", lineterminator="").writerow(cells)
    return buffer.getvalue()


def json_line(columns: Sequence[str], row: Sequence[object]) -> str:
    """A row as a JSON object; missing values are null."""
    return json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False)
