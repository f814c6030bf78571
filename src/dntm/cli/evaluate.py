"""`dntm evaluate` and `dntm cloze`: Tables 2 and 4 for trained models, and their records.

Both read the split of a dataset, or any corpus of annotated or plain text, which is then built on
the fly with the vocabulary of each model and the settings that came with it.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from tqdm import tqdm

from dntm.cli.runs import (
    Computing,
    dataset_of,
    documents_of,
    model_of,
    own_dataset_of,
    print_changes,
    print_cloze,
    print_groups,
    refuse_unused,
    result_file,
    scorer_of,
)
from dntm.corpus.dataset import Dataset, Split
from dntm.corpus.dataset_builder import BuildConfig, Entities, ReadConfig, build_dataset
from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.formats import Format
from dntm.corpus.text import Documents
from dntm.corpus.vocabulary import load_vocabulary
from dntm.evaluation.cloze import ClozeRecords, ClozeText, summarize_cloze
from dntm.evaluation.groups import GROUPS, as_plain, score_groups
from dntm.evaluation.records import Records, ideal_records
from dntm.evaluation.uncertainty import (
    Comparison,
    as_csv,
    document_names,
    document_rows,
    group_sums,
    paired_bootstrap,
    sum_columns,
    whole_documents,
)
from dntm.files import resolved, write_text

if TYPE_CHECKING:
    from dntm.model.cache import Cache, T
    from dntm.model.text_model import TextModel


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """How a corpus that is no dataset is read."""

    entities: tuple[Entities, ...] | None = None
    """A corpus that is no dataset: what counts as an entity (see dntm data build)."""
    entities_from: Literal["first", "repeated"] | None = None
    """A corpus that is no dataset: from when on names and unknown words are entities; as the
    model's own texts were read where not given."""
    max_sentences: int | None = None
    """A corpus that is no dataset: cut documents into parts of at most so many sentences."""
    format: Format | None = None
    """A corpus that is no dataset: its files' format, recognised where not given."""
    documents: Documents = "file"
    """Plain text: one document a file, or one between empty lines."""
    from_: Annotated[str | None, tyro.conf.arg(name="from")] = None
    """A local clone, folder or mirror of a corpus known by name."""

    def build(self, corpus: str, model: Path, target: Path, *, lend: bool) -> Dataset:
        """The dataset of a corpus for a model, all of it in the test split.

        Without `lend`, documents with more entities than rows are left out.
        """
        settings = load_vocabulary(model, entities=50).settings
        since = self.entities_from
        if since is None and settings is not None and settings.entities_from == "repeated":
            since = "repeated"
        build = BuildConfig(
            entities=self.entities,
            entities_from=since or "first",
            overflow="evict" if lend else "drop",
            max_sentences=self.max_sentences,
            vocabulary_of=model,
        )
        reading = ReadConfig(
            format=self.format,
            documents=self.documents,
            fractions=(0.0, 0.0, 1.0),
        )
        empty: list[str] = []
        built = build_dataset(corpus, target, reading, build, given=self.from_, empty=empty)
        for problem in empty:
            print(f"left out: {problem}", file=sys.stderr)
        if left := built["left_out"]["too_many_entities"]:
            print(f"left out: {left} with more entities than the model has rows", file=sys.stderr)
        for warning in built["warnings"]:
            print(f"warning: {warning}", file=sys.stderr)
        return Dataset.open(target)


Corpus = Annotated[CorpusOptions, tyro.conf.arg(name="")]


@dataclass(frozen=True, kw_only=True)
class Evaluating(Computing):
    """What both commands share."""

    runs: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="MODELS")]
    """Run folders, checkpoints such as RUN/best, or default, the model that comes with dntm; and
    after them, where it is not the dataset that a run was trained on, what to read: a dataset, or a
    file, folder or name of a corpus."""
    split: Split = "test"
    """Which split of a dataset."""
    dataset: Path | None = None
    """The dataset folder; the one the run was trained on where not given."""
    records: bool = True
    """Write one CSV record per predicted token (or gap) to RUN/records-SPLIT.csv
    (RUN/cloze-SPLIT.csv, with -same-sentence behind SPLIT); with another dataset than the run's own
    its name comes behind. Of a corpus that is no dataset, and of default, only where --output-dir
    says."""
    output_dir: Path | None = None
    """The folder that records go to instead."""
    corpus: Corpus = field(default_factory=CorpusOptions)

    def arguments(self) -> tuple[list[Path], str | None]:
        """The models and the corpus; the last of several words is one where it is no model."""
        if not self.runs:
            raise ValueError("no run given, expected at least one run folder")
        models, corpus = list(self.runs), None
        if len(models) > 1 and not _is_model(models[-1]):
            corpus = models.pop()
        if corpus is not None and self.dataset is not None:
            raise ValueError(f"{corpus} is no model, and --dataset tells what to read: give one")
        if not self.records:
            refuse_unused(self, "output_dir", "with --no-records")
        told = " ".join(field.name for field in fields(CorpusOptions))
        if corpus is None:
            refuse_unused(self.corpus, told, "without a corpus behind the models")
        elif (Path(corpus) / "dataset.json").is_file():
            refuse_unused(self.corpus, told, f"on {corpus}, which is a dataset")
        else:
            refuse_unused(self, "split", f"on {corpus}, which is no dataset: all of it is read")
        return [_folder(model) for model in models], corpus

    @contextmanager
    def reading(
        self, model: Path, corpus: str | None, *, lend: bool = True
    ) -> Iterator[tuple[Dataset, list[AnonymizedDocument]]]:
        """The dataset that a model is to read, and the documents of the split."""
        if corpus is None or (Path(corpus) / "dataset.json").is_file():
            dataset = dataset_of(model, Path(corpus) if corpus else self.dataset)
            yield dataset, documents_of(dataset, self.split)
            return
        with TemporaryDirectory() as folder:
            target = Path(folder) / (resolved(Path(corpus)).name.split(".")[0] or "corpus")
            dataset = self.corpus.build(corpus, model, target, lend=lend)
            yield dataset, documents_of(dataset, "test")

    def target(self, model: Path, dataset: Dataset, corpus: str | None, name: str) -> Path | None:
        """Where the records go, None where nowhere."""
        if not self.records:
            return None
        if self.output_dir is not None:
            self.output_dir.mkdir(parents=True, exist_ok=True)
            return self.output_dir / f"{name}-{model.name}-{dataset.folder.name}.csv"
        made = corpus is not None and not (Path(corpus) / "dataset.json").is_file()
        if made or resolved(model).is_relative_to(resolved(_folder("default"))):
            return None
        return result_file(model, dataset, name)


def _is_model(word: str) -> bool:
    folder = Path(word)
    files = ("config.json", "config.yaml", "best/config.json")
    return word == "default" or any((folder / name).is_file() for name in files)


def _folder(model: str) -> Path:
    from dntm.model.checkpoint import folder_of

    return folder_of(model)


@dataclass(frozen=True, kw_only=True)
class Evaluate(Evaluating):
    """Score a split or a corpus with one or more trained models, side by side."""

    cache: bool = False
    """Score once more with a neural cache over the document so far (Grave et al. 2017)."""
    own_cache: bool = False
    """Score once more with such a cache in which what followed the same word or entity counts more
    (docs/peers.md)."""
    dynamic_evaluation: bool = False
    """Score once more with weights that follow each document (Krause et al. 2018)."""
    tune: bool = False
    """Tune these anew, on the dev split of the dataset that the run was trained on; else that is
    done once, and the settings stay beside the weights (cache.json, own_cache.json,
    dynamic_evaluation.json)."""
    by_document: Path | None = None
    """Also write each document's tokens and nats by group, a row for each run, to this CSV file."""
    against: str | None = None
    """Also compare the other rows of the table with the one of this name, such as "runs/a + cache",
    with 95 % intervals of a paired bootstrap over whole documents. "runs/a" stands for runs/a-1,
    runs/a-2, ... together where there is no such run: then all runs are taken for seeds of what
    is left without the number at their end."""

    def run(self) -> None:
        """Print the table and write the records."""
        if not (self.cache or self.own_cache or self.dynamic_evaluation):
            refuse_unused(self, "tune", "without --cache, --own-cache or --dynamic-evaluation")
        models, corpus = self.arguments()
        self._check_against(models)
        self.set_threads()
        table, ideal_row, written, sums = {}, {}, [], []
        seeds: dict[str, list[Records]] = {}
        for run in models:
            with self.reading(run, corpus) as (dataset, documents):
                if ideal := ideal_records(dataset, self.split):
                    ideal_row["ideal reader"] = as_plain(score_groups(ideal))
                for way, records in self._score(run, dataset, documents):
                    name = f"{run}{f' + {way}' if way else ''}"
                    table[name] = as_plain(score_groups(records))
                    seeds.setdefault(self._row(name, models), []).append(records)
                    groups = [group_sums([records], group) for group in GROUPS]
                    sums += [[name, *row] for row in document_rows(groups)]
                    file = f"records-{self.split}{f'-{way}' if way else ''}"
                    if path := self.target(run, dataset, corpus, file):
                        records.write(path)
                        written.append(f"records: {path}")
        if self.by_document:
            write_text(self.by_document, as_csv(["run", "document", *sum_columns(GROUPS)], sums))
            written.append(f"documents: {self.by_document}")
        print_groups(f"perplexity on {corpus or self.split}", table | ideal_row)
        if self.against is not None:
            print_changes(f"against {self.against}", self._compared(seeds, dataset))
        for line in written:
            print(line)

    def _check_against(self, models: list[Path]) -> None:
        if self.against is None:
            return
        from dntm.model.checkpoint import best_of
        from dntm.model.kneser_ney import KneserNey

        both = self.cache and self.dynamic_evaluation
        ways = {"dynamic-evaluation": self.dynamic_evaluation, "own-cache": self.own_cache,
                "cache": self.cache, "cache-and-dynamic-evaluation": both}  # fmt: skip
        added = ["", *(f" + {way}" for way, asked in ways.items() if asked)]
        rows = dict.fromkeys(
            self._row(f"{run}{more}", models)
            for run in models
            for more in ([""] if KneserNey.is_in(best_of(run)) else added)
        )
        if self.against not in rows or len(rows) == 1:
            found = ", ".join(f'"{row}"' for row in rows)
            raise ValueError(f'against "{self.against}", expected one of several rows: {found}')

    def _row(self, name: str, models: list[Path]) -> str:
        """What a row of the table is called where rows are compared."""
        one = any(str(self.against).partition(" + ")[0] == str(run) for run in models)
        return name if one else re.sub(r"-\d+(?= \+ |$)", "", name)

    def _compared(
        self, seeds: dict[str, list[Records]], dataset: Dataset
    ) -> dict[str, dict[str, Comparison]]:
        """Every model but the one named, by token group, against that."""
        document = document_names(dataset.information)
        sums = {
            name: {group: whole_documents(group_sums(runs, group), document) for group in GROUPS}
            for name, runs in seeds.items()
        }
        base = sums.pop(str(self.against))
        return {
            name: {group: paired_bootstrap(base[group], own[group]) for group in GROUPS
                   if base[group].documents}
            for name, own in sums.items()
        }  # fmt: skip

    def _score(
        self, run: Path, dataset: Dataset, documents: list[AnonymizedDocument]
    ) -> Iterator[tuple[str, Records]]:
        """What each way to score has besides the model, in a word, and its records."""
        from dntm.model.cache import Cache, OwnCache
        from dntm.model.dynamic_evaluation import DynamicEvaluation, tune
        from dntm.model.text_model import TextModel

        model = scorer_of(run, dataset, self.device)
        yield "", model.records(tqdm(documents, str(run), unit=" documents"))
        if not isinstance(model, TextModel):
            if self.cache or self.own_cache or self.dynamic_evaluation:
                print(f"{run} is an n-gram model: nothing to add to it", file=sys.stderr)
            return
        if self.dynamic_evaluation:
            way = "dynamic-evaluation"
            setting = self._tuned(run, dataset, DynamicEvaluation, lambda dev: tune(model, dev))
            yield way, setting.records(model, tqdm(documents, f"{run} + {way}", unit=" documents"))
        if self.own_cache:
            way = "own-cache"
            model.model.cache = self._tuned_cache(run, dataset, model, OwnCache)
            yield way, model.records(tqdm(documents, f"{run} + {way}", unit=" documents"))
        if self.cache:
            model.model.cache = self._tuned_cache(run, dataset, model, Cache)
            yield "cache", model.records(tqdm(documents, f"{run} + cache", unit=" documents"))
        if self.cache and self.dynamic_evaluation:
            way = "cache-and-dynamic-evaluation"
            yield way, setting.records(model, tqdm(documents, f"{run} + {way}", unit=" documents"))

    def _tuned_cache(
        self, run: Path, dataset: Dataset, model: "TextModel", kind: "type[Cache]"
    ) -> "Cache":
        return self._tuned(run, dataset, kind, lambda dev: model.tune_cache(dev, kind))

    def _tuned(
        self,
        run: Path,
        dataset: Dataset,
        kind: "type[T]",
        tune: "Callable[[list[AnonymizedDocument]], T]",
    ) -> "T":
        """What lies beside the weights, tuned and put there first where it does not."""
        from dntm.model.checkpoint import best_of

        folder, own = best_of(run), own_dataset_of(run, dataset)

        def tune_on_dev() -> "T":
            if "dev" not in own.splits:
                raise ValueError(
                    f"{folder} has no {kind.FILE}, and {own.folder} no dev split to tune it on: "
                    "evaluate the run on a dataset that has one first"
                )
            print(f"tuned on the dev split of {own.folder}:", file=sys.stderr)
            return tune(documents_of(own, "dev"))

        if self.tune:
            (folder / kind.FILE).unlink(missing_ok=True)
        found = kind.ready(folder, tune_on_dev)
        numbers = ", ".join(f"{name} {value:g}" for name, value in asdict(found).items())
        print(f"{kind.FILE}: {numbers}", file=sys.stderr)
        return found


@dataclass(frozen=True, kw_only=True)
class Cloze(Evaluating):
    """Let trained models guess which entity stood in each gap of a split or a corpus."""

    same_sentence: bool = False
    """Let entities take part that the sentence of the gap itself brings in, as gaps and as
    candidates; the paper's candidates come before the sentence."""
    json: bool = False
    """Print JSON instead of the table."""

    def run(self) -> None:
        """Print the table and write the records."""
        models, corpus = self.arguments()
        self.set_threads()
        table, written = {}, []
        for run in models:
            with self.reading(run, corpus, lend=False) as (dataset, documents):
                records = self._fill(run, dataset, documents)
            table[str(run)] = summarize_cloze(records)
            kind = "-same-sentence" if self.same_sentence else ""
            if path := self.target(run, dataset, corpus, f"cloze-{self.split}{kind}"):
                records.write(path)
                written.append(str(path))
        if self.json:
            plain = {name: summary.as_plain() for name, summary in table.items()}
            print(json.dumps({"split": self.split, "runs": plain, "records": written}, indent=2))
            return
        print_cloze(f"cloze test on {corpus or self.split}", table)
        for line in written:
            print(f"records: {line}")

    def _fill(
        self, run: Path, dataset: Dataset, documents: list[AnonymizedDocument]
    ) -> ClozeRecords:
        held = [d for d in documents if d.largest <= dataset.vocabulary.entities]
        if left := len(documents) - len(held):
            print(f"left out: {left} with more entities than the model has rows", file=sys.stderr)
        texts = [ClozeText.of(document, same_sentence=self.same_sentence) for document in held]
        if not any(text.gaps for text in texts):
            raise ValueError(
                f"{dataset.folder} has no gap in its {self.split} split: "
                "expected an entity that comes back after another one"
            )
        filled = model_of(run, dataset, self.device).fill_all(texts)
        bar = tqdm(filled, str(run), total=len(texts), unit=" documents")
        return ClozeRecords.of(texts, bar)
