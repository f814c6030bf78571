"""`dntm score`: the surprisal of every token or word of texts, or of stimuli in a table."""

import csv
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TextIO, cast, get_args

import tyro
from tqdm import tqdm

from dntm.cli.runs import aligned, printable
from dntm.cli.texts import ReaderOptions, Shared, as_path, check_exists, check_output, output_format
from dntm.corpus.text import Documents
from dntm.files import new_file
from dntm.reader.reading import COLUMNS, WORD_COLUMNS, Reading, Unit
from dntm.reader.stimuli import MEASURES, StimulusConfig, summarize, summary_keys

if TYPE_CHECKING:
    from dntm.reader.reader import Reader
    from dntm.reader.text import Kinds, PreparedText

Format = Literal["tsv", "csv", "jsonl"]
Values = Sequence[object]
_TIE = 1e-6
"""Smaller differences are rounding errors; such pairs do not count as correct."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """Print the surprisal of every token of texts, or of stimuli in a table."""

    main_options: ClassVar = ("text_column", "summary", "words", "output", "model")

    sources: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILES")]
    """Files or folders of plain text, CoNLL-2012, CoNLL-U or JSON lines, or tables (with
    --text-column), optionally gzipped; - for standard input."""
    table: Annotated[StimulusConfig, tyro.conf.arg(name="")] = field(default_factory=StimulusConfig)
    """The columns of a table of stimuli."""
    summary: bool = False
    """Tables: print one row per stimulus, with sums over the text and over each region."""
    format: Format | None = None
    """tsv or csv: tab- or comma-separated with a header line; jsonl: one JSON object per line. If
    omitted, the extension of --output decides; the default is tsv."""
    output: Path | None = None
    """Output file; if omitted, standard output."""
    words: bool = False
    """Print one row per whitespace-separated word instead of one row per token (tables: always)."""
    unit: Unit = "bits"
    """The unit of surprisal."""
    documents: Documents = "file"
    """Plain text: each file is a document (file), or blank lines separate documents and each line
    is a paragraph (blank-line)."""
    on_error: Literal["stop", "skip"] = "stop"
    """Stop at an unreadable file, a malformed document or a malformed row, or skip and list it."""
    options: Shared = field(default_factory=ReaderOptions)
    """Options of the model and of its entities."""

    def run(self) -> None:
        """Print the rows of each text as soon as it has been read."""
        skipped: list[str] = []
        empty: list[str] = []
        stopped: list[Exception] = []
        if not self.sources:
            raise ValueError("no file given, expected at least one")
        check_output(self.output, *self.sources)
        for source in self.sources if self.on_error == "stop" else ():
            check_exists(source)
        if not self.table.text_column and (self.summary or self.table != StimulusConfig()):
            raise ValueError("--summary, --region-* and --group-by are for tables (--text-column)")
        table = StimulusRows(self, skipped) if self.table.text_column else None
        columns = table.columns if table else WORD_COLUMNS if self.words else COLUMNS
        reader, scored, words, total = self.options.reader(), 0, 0, self._size(table)
        timing = "{l_bar}{bar}| {elapsed}<{remaining}" if total else "{desc}: {elapsed}"
        bar: tqdm[Any] = tqdm(
            total=total, desc="scoring", disable=None, delay=1, bar_format=f"{timing}{{postfix}}"
        )
        output: AbstractContextManager[TextIO] = nullcontext(sys.stdout)
        with bar, new_file(self.output) if self.output else output as target:
            write = self._writer(target, columns)
            texts = table.texts(reader) if table else self._texts(reader, skipped, empty, stopped)
            for reading in reader.read_all(texts, unit=self.unit, meanings=False, parts=not table):
                rows = reading.word_rows() if self.words else reading.token_rows()
                for row in table.rows(reading) if table else rows:
                    write(row)
                target.flush()
                scored += 1
                words += sum(len(sentence.tokens) - 1 for sentence in reading.sentences)
                speed = words / max(bar.format_dict["elapsed"], 0.1)
                bar.set_postfix_str(f"{speed:,.0f} words/s", refresh=False)
                bar.update(1 if table else len(reading.text))
            for problem in (*skipped, *empty):
                bar.write(f"skipped: {problem}", file=sys.stderr)
            if stopped:
                raise stopped[0]
            if not scored:
                raise ValueError("nothing to score: every file is empty or was skipped")
        if table and len(self.table.text_column) == 2:
            table.print_accuracy()

    def _writer(self, target: TextIO, columns: Sequence[str]) -> Callable[[Values], object]:
        """A function that writes one row; missing values are empty, or null in JSON."""
        if self.output_format == "jsonl":
            return lambda row: print(
                json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False), file=target
            )
        delimiter = "," if self.output_format == "csv" else "\t"
        writer = csv.writer(target, delimiter=delimiter, lineterminator="\n")
        writer.writerow(columns)
        return lambda row: writer.writerow(
            f"{value:.6f}" if isinstance(value, float) else value for value in row
        )

    @property
    def output_format(self) -> str:
        """The format of the output."""
        return output_format(self.format, self.output, get_args(Format))

    def _texts(
        self, reader: "Reader", skipped: list[str], empty: list[str], stopped: list[Exception]
    ) -> Iterator["PreparedText"]:
        """The documents of all files. Documents before an error are still scored."""
        from dntm.reader.text import prepare

        noted = skipped if self.on_error == "skip" else None
        lazily = reader.vocabulary.entities_from == "first"
        names = Counter(Path(source).name for source in self.sources)
        for source in self.sources:
            parent = f"{Path(source).parent}/" if names[Path(source).name] > 1 else ""
            try:
                texts = self.options.texts(source, self.documents, noted, empty, lazily=lazily)
                for text, kinds, is_long in texts:
                    document = replace(text, name=f"{parent}{text.name}")
                    lexicon = reader.engine.lexicon
                    own = prepare(document, lexicon, kinds, lazily=True) if is_long else None
                    yield own or reader.prepare(document, kinds)
            except (ValueError, OSError) as error:
                if noted is None:
                    stopped.append(error)
                    return
                noted.append(str(error))

    def _size(self, table: "StimulusRows | None") -> int | None:
        """The number of texts in a table, or of characters if all sources are plain text."""
        files = [Path(source) for source in self.sources]
        if table:
            return table.count
        plain = all(file.suffix == ".txt" and file.is_file() for file in files)
        return sum(file.stat().st_size for file in files) if plain else None


class StimulusRows:
    """The output for a table of stimuli."""

    def __init__(self, score: Score, skipped: list[str]) -> None:
        texts = score.table.text_column
        if len(score.sources) > 1 or len(texts) > 2:
            raise ValueError("--text-column: expected one table with one or two text columns")
        if score.table.group_by and len(texts) < 2:
            raise ValueError(f"--group-by {score.table.group_by} needs two columns of texts")
        self._score, self._pairs, [source] = score, len(texts) == 2, score.sources
        with as_path(source) as path:
            noted = skipped if score.on_error == "skip" else None
            stimuli = score.table.read(path, "stdin" if source == "-" else source, noted)
        self._stimuli, self._rest, self._keys = stimuli, iter(stimuli), summary_keys(stimuli)
        self._sums = score.summary or self._pairs
        # Rows of words do not repeat the text
        self._kept = [c for c in stimuli[0].values if self._sums or c not in texts]
        own = self._keys if self._sums else ["region", *WORD_COLUMNS[1:]]
        if self._pairs:
            own = [f"{text}_{key}" for text in texts for key in own]
            own += [f"{name}_difference" for name in MEASURES]
        own = ["stimulus", *own]
        self.columns = [*self._kept, *map(self._free, own)]
        self.count = len(stimuli) * len(texts)
        self._read: list[Reading] = []
        self._differences: dict[str, list[list[float]]] = {}

    def _free(self, name: str) -> str:
        return self._free(f"dntm_{name}") if name in self._kept else name

    def texts(self, reader: "Reader") -> Iterator["PreparedText"]:
        """All texts, in order."""
        options = self._score.options
        kinds = None if options.entities == ("auto",) else cast("Kinds", options.entities)
        texts = (text for stimulus in self._stimuli for text in stimulus.texts)
        return (reader.prepare(text, kinds) for text in texts)

    def rows(self, reading: Reading) -> Iterator[Values]:
        """The output rows of the next text; none for the first text of a pair."""
        self._read.append(reading)
        if self._pairs and len(self._read) == 1:
            return
        stimulus, readings, self._read = next(self._rest), self._read, []
        kept = [stimulus.values[name] for name in self._kept]
        if self._score.output_format != "jsonl":  # as text, so that no number is rounded
            kept = [v if isinstance(v, str | None) else json.dumps(v) for v in kept]
        kept.append(stimulus.number)
        if not self._sums:
            regions = {word: n for n, words in stimulus.regions[0].items() for word in words}
            for index, row in enumerate(reading.word_rows()):
                yield [*kept, regions.get(index), *row[1:]]
            return
        sums = [summarize(*both) for both in zip(readings, stimulus.regions, strict=True)]
        kept += [own.get(key) for own in sums for key in self._keys]
        if self._pairs:
            differences = [sums[1][name] - sums[0][name] for name in MEASURES]
            group = str(stimulus.values.get(self._score.table.group_by or ""))
            self._differences.setdefault(group, []).append(differences)
            kept += differences
        yield kept

    def print_accuracy(self) -> None:
        """Print how often the first text of a pair has the lower surprisal, for each group."""
        group = self._score.table.group_by
        all_pairs = [pair for pairs in self._differences.values() for pair in pairs]
        rows = [[f"accuracy by {group}" if group else "accuracy", "pairs", *MEASURES]]
        for name, pairs in (*(self._differences if group else {}).items(), ("all", all_pairs)):
            shares = [
                sum(d > _TIE for d in column) / len(pairs) for column in zip(*pairs, strict=True)
            ]
            rows.append([printable(name), f"{len(pairs):,}", *(f"{share:.3f}" for share in shares)])
        print(*aligned(rows), sep="\n", file=sys.stderr)
