"""`dntm read`: a reading as text for the terminal, as an HTML page or as JSON.

With color, each entity has its own color and a word's background shade is its surprisal; without,
an entity is followed by its number. Control characters are replaced.
"""

import json
import os
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, get_args

from dntm.cli.runs import aligned, printable
from dntm.cli.texts import File, ReaderOptions, Shared, check_output, output_format
from dntm.corpus.text import as_prose, spaces_before
from dntm.evaluation.groups import Group
from dntm.files import write_text
from dntm.reader.reading import EntityReading, Reading, SentenceReading, TokenReading, Unit, in_bits

Format = Literal["text", "html", "json"]
_COLORS = (31, 32, 33, 34, 35, 36, 91, 92, 93, 94, 95, 96)
_SHADES = (None, 233, 235, 237, 239, 241)
"""Gray backgrounds of the 256-color palette, from expected to surprising."""
_STEP = 3.0
"""Bits from one shade to the next."""
_SHOWN = 5
"""Words per list."""


@dataclass(frozen=True, kw_only=True)
class Read:
    """Read a text: predicted words for its entities, and surprisals of its tokens."""

    main_options: ClassVar = ("format", "output", "unit", "entities", "model")

    source: File
    document: int = 1
    """Number of the document in the file, counted from 1."""
    format: Format | None = None
    """text: for the terminal; html: a web page; json: all results. If omitted, the extension of
    --output decides; the default is text. For tables, use dntm score."""
    output: Path | None = None
    """Output file; if omitted, standard output."""
    unit: Unit = "bits"
    """The unit of surprisal."""
    color: Literal["auto", "always", "never"] = "auto"
    """Use colors in text output; auto: only if the output is a terminal."""
    options: Shared = field(default_factory=ReaderOptions)
    """Options of the model and of its entities."""

    def run(self) -> None:
        """Read and print."""
        check_output(self.output, self.source)
        text, kinds = self.options.text(self.source, self.document)
        chosen = output_format(self.format, self.output, get_args(Format))
        reader = self.options.reader("auto" if chosen == "json" else "single")
        prepared = reader.prepare(text, kinds)
        reading = reader.read(prepared, unit=self.unit)
        if chosen == "json":
            lines = iter([json.dumps(reading.to_dict(), ensure_ascii=False)])
        elif chosen == "html":
            lines = iter([html_page(reading, prepared.unknown(reader.engine.lexicon))])
        else:
            terminal = self.output is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
            color = self.color == "always" or (self.color == "auto" and terminal)
            lines = text_lines(reading, color=color)
        if self.output is None:
            for line in lines:
                print(line)
        else:
            write_text(self.output, "".join(f"{line}\n" for line in lines))


def text_lines(reading: Reading, *, color: bool) -> Iterator[str]:
    """The whole reading, line by line."""
    from dntm.reader.meaning import confidence_label  # it needs torch, which tables do not

    for sentence in reading.sentences:
        yield _sentence(sentence, reading.unit, color=color)
    trails = _trails(reading)
    for entity, name in reading.entities.items():
        trail = trails.get(entity)
        if not trail:  # it had no slot in an overfull sentence
            continue
        count = trail[-1][1].occurrence
        title = _painted(f"{printable(name)} [{entity}]", _color(entity) if color else "")
        yield ""
        yield f"{title}, mentioned {'once' if count == 1 else f'{count} times'}"
        for index, state in trail if trail[-1][1].predicted_words else ():
            label, words = confidence_label(state.confidence), printable(", ".join(_words(state)))
            yield f"  after sentence {index + 1:<4} {words}{f' ({label})' if label else ''}"
    yield ""
    yield from aligned(
        [[f"{reading.unit} per token", "tokens", "dynamic", "static"], *_means(reading)]
    )


def _trails(reading: Reading) -> dict[int, list[tuple[int, EntityReading]]]:
    """The states of each entity with their sentences; `Reading.trail` finds one entity only."""
    found: dict[int, list[tuple[int, EntityReading]]] = {}
    for index, state in ((s.index, state) for s in reading.sentences for state in s.entities):
        found.setdefault(state.entity, []).append((index, state))
    return found


def _means(reading: Reading) -> list[list[str]]:
    """Mean surprisals of each token group that is not empty, and bits per character."""
    bits = (reading.bits_per_character, reading.static_bits_per_character)
    return [
        [
            Group(group).label,
            f"{count:,}",
            *(f"{total[name] / count:.3f}" for name in ("surprisal", "static_surprisal")),
        ]
        for group, total in reading.totals().items()
        if (count := int(total["tokens"]))
    ] + [["bits per character", f"{reading.characters:,}", *(f"{b:.3f}" for b in bits)]]


def _sentence(sentence: SentenceReading, unit: Unit, *, color: bool) -> str:
    words = [t for t in sentence.tokens if not t.end]
    if color:
        return " ".join(_shaded(token, in_bits(token.surprisal, unit)) for token in words)
    return printable(as_prose(f"{t.word} [{t.entity}]" if t.entity else t.word for t in words))


def _shaded(token: TokenReading, bits: float) -> str:
    shade = _SHADES[min(int(bits / _STEP), len(_SHADES) - 1)]
    codes = [] if shade is None else [f"48;5;{shade};38;5;255"]
    if token.entity:
        codes.append(_color(token.entity))
    return _painted(printable(token.word), ";".join(codes))


def _painted(text: str, codes: str) -> str:
    return f"\x1b[{codes}m{text}\x1b[0m" if codes else text


def _color(entity: int) -> str:
    return f"1;{_COLORS[(entity - 1) % len(_COLORS)]}"


def _words(state: EntityReading) -> list[str]:
    return [near.word for near in state.predicted_words[:_SHOWN]]


def html_page(reading: Reading, unknown: Collection[int]) -> str:
    """The reading as a self-contained page, with best guesses above `unknown` entities."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("dntm.cli"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("reading.html").render(
        reading=reading,
        sentences=[_html_tokens(sentence, reading.unit) for sentence in reading.sentences],
        totals=_means(reading),
        unknown=unknown,
        words=_words,
        trails=_trails(reading),
        entities=sorted(reading.entities.items(), key=lambda item: item[0] not in unknown),
        # The golden angle: neighboring entities have different hues.
        hue=lambda entity: round((205 + (entity - 1) * 137.508) % 360),
    )


def _html_tokens(sentence: SentenceReading, unit: Unit) -> list[dict[str, object]]:
    tokens = [token for token in sentence.tokens if not token.end]
    states = {state.entity: state for state in sentence.entities}
    return [
        {
            "state": states.get(token.entity),
            "space": space,
            "word": token.word,
            "entity": token.entity,
            "shade": f"{min(in_bits(token.surprisal, unit) / 18, 1) * 0.6:.2f}",
            "title": (
                f"surprisal {token.surprisal:.2f} {unit} with memory, "
                f"{token.static_surprisal:.2f} without"
            ),
        }
        for space, token in zip(spaces_before(t.word for t in tokens), tokens, strict=True)
    ]
