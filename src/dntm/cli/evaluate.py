"""`dntm evaluate`: Tables 2 and 4 for trained models."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from tqdm import tqdm

from dntm.cli.runs import Computing, Without, documents_of, print_groups, print_table
from dntm.corpus.dataset import SPLITS, Dataset, Split
from dntm.corpus.dataset_builder import BuildConfig, ReadConfig, build_dataset
from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.vocabulary import load_vocabulary
from dntm.evaluation import uncertainty
from dntm.evaluation.cloze import ClozeRecords, ClozeText, summarize_cloze
from dntm.evaluation.groups import Group, score_groups
from dntm.evaluation.records import Records, Table, as_csv, ideal_records, records_of
from dntm.files import DEFAULT, folder_of, resolved, write_text
from dntm.settings import read_yaml, typed

if TYPE_CHECKING:
    from dntm.model.baselines.neural_cache import NeuralCache
    from dntm.model.scorer import LanguageModel, Scorer

NGRAM = "ngram"
Reading = tuple[Dataset, list[AnonymizedDocument]]


@dataclass(frozen=True, kw_only=True)
class Evaluate(Computing):
    """Score a dataset with one or more trained models.

    Prints the perplexity of each token group (Table 2). With --cloze, prints the results of the
    cloze test (Table 4).
    """

    models: Annotated[
        tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="MODEL [MODEL ...] [TEXT]")
    ]
    """One or more models: run folders, checkpoints such as RUN/best, "default" (the bundled model)
    or "ngram" (a 5-gram model of the dataset's train split). The last argument can be the text
    to score: a dataset folder, or a corpus (a file, a folder or a name from dntm data list), which
    is read with the model's vocabulary and settings."""
    dataset: Path | None = None
    """The dataset folder; if omitted, the one that the run was trained on."""
    split: Split = "dev"
    """The split of the dataset to score."""
    on_error: Literal["stop", "skip"] = "stop"
    """Stop at a malformed document of a corpus, or skip and list it."""
    cloze: bool = False
    """Run the cloze test: for each gap, rank the entities of earlier sentences."""
    cache: bool = False
    """Also score with a neural cache (Grave et al. 2017), tuned on the run's dev split."""
    exchange_memories: bool = False
    """Also score with the entities' memories exchanged within each document. If a gain remains, it
    does not depend on which entity a memory belongs to."""
    without: Without = ()
    """Also score without a part of the models: memory, or an extension such as pointer. Can be
    repeated. With --cloze or --open-vocabulary, the complete model is not scored."""
    open_vocabulary: bool = False
    """Print nats per word and bits per character, with a probability for every string of words.
    Scores the model, its static baseline, and a 5-gram model with the same spelling."""
    against: str | None = None
    """Compare every row of the table with this row, such as "runs/a + cache". Prints changes in
    percent with 95 % intervals (paired bootstrap over documents). If runs/a does not exist, it
    stands for the runs runs/a-1, runs/a-2, ... with different seeds."""
    records: bool = True
    """Write one CSV row per token to RUN/records-SPLIT.csv, or per gap to RUN/cloze-SPLIT.csv;
    --no-records: write no files. The dataset name is appended if the run was trained on another
    dataset."""
    output_dir: Path | None = None
    """Folder for these CSV files; if omitted, the run folder ("default" and "ngram" write none)."""
    by_document: Path | None = None
    """Write the number of tokens and the summed surprisal in nats, for each document and token
    group, to this CSV file."""
    json: Path | None = None
    """Write the printed numbers to this JSON file."""

    def run(self) -> None:
        """Print the table and write the files."""
        models, corpus = self._arguments()
        self._check_against(models)
        if self.exchange_memories and (self.cloze or self.open_vocabulary):
            raise ValueError("--exchange-memories cannot be used with --cloze or --open-vocabulary")
        self.set_threads()
        if self.open_vocabulary:
            numbers = self._open_vocabulary(models, corpus)
        elif self.cloze:
            numbers = self._cloze(models, corpus)
        else:
            numbers = self._perplexities(models, corpus)
        if self.json:
            write_text(self.json, json.dumps(numbers, indent=2) + "\n")
            print(f"numbers: {self.json}")

    def _arguments(self) -> tuple[list[str], str | None]:
        """The models and the text: the last of several arguments if it is not a model."""
        if not self.models:
            raise ValueError("no model given, expected at least one run folder")
        models, corpus = list(self.models), None
        if len(models) > 1 and not _is_model(models[-1]):
            corpus = models.pop()
        if corpus is not None and self.dataset is not None:
            raise ValueError(f"two texts given, {corpus} and --dataset {self.dataset}")
        if corpus is not None and NGRAM in models and not _is_dataset(corpus):
            raise ValueError(f"ngram needs a dataset with a train split, but {corpus} is a corpus")
        return models, corpus

    @contextmanager
    def _reading(self, model: str, corpus: str | None, *, evict: bool) -> Iterator[Reading]:
        """The dataset for a model, and the documents of the split.

        Unless `evict`, documents of a corpus with more entities than the model has rows are left
        out.
        """
        if corpus is None or _is_dataset(corpus):
            run = Path(model)
            given = Path(corpus) if corpus else self.dataset or _own_dataset(run)
            if given is None:
                if model not in (DEFAULT, NGRAM) and not run.exists():
                    raise ValueError(f"{run}: no such folder, expected a run folder")
                raise ValueError(f"the training dataset of {run} is not known: pass --dataset")
            dataset = Dataset.open(given).check_content()
            yield dataset, documents_of(dataset, self.split)
            return
        source = Path(model)
        if (own := _own_dataset(source)) and not (source / "best" / "vocab.txt").is_file():
            source = own  # an adapter has no words of its own
        build = BuildConfig(
            entities_from=load_vocabulary(source, entities=50).entities_from,
            overflow="evict" if evict else "drop",
            vocabulary_of=source,
        )
        train, dev, test = (float(split == self.split) for split in SPLITS)
        reading = ReadConfig(fractions=(train, dev, test), on_error=self.on_error)
        with TemporaryDirectory() as folder:
            target = Path(folder) / (resolved(Path(corpus)).name.split(".")[0] or "corpus")
            skipped: list[str] = []
            empty: list[str] = []
            built = build_dataset(corpus, target, reading, build, skipped=skipped, empty=empty)
            for problem in (*skipped, *empty, *built["warnings"]):
                print(f"warning: {problem}", file=sys.stderr)
            dataset = Dataset.open(target)
            yield dataset, documents_of(dataset, self.split)

    def _write(self, table: Table, name: str, model: str, dataset: Dataset) -> None:
        """Write records to their file, if any: RUN/NAME.csv for the run's own dataset."""
        run = Path(model)
        if not self.records or not (self.output_dir or run.is_dir()):
            return
        if self.output_dir is not None:
            self.output_dir.mkdir(parents=True, exist_ok=True)
            path = self.output_dir / f"{name}-{run.name}-{dataset.folder.name}.csv"
        else:
            own, here = _own_dataset(run), resolved(dataset.folder)
            foreign = own is not None and resolved(own) != here
            path = run / (f"{name}-{here.name}.csv" if foreign else f"{name}.csv")
        table.write(path)
        print(f"records: {path}", file=sys.stderr)

    def _perplexities(self, models: list[str], corpus: str | None) -> dict[str, Any]:
        table, ideal_row, sums = {}, {}, []
        seeds: dict[str, list[Records]] = {}
        for model in models:
            with self._reading(model, corpus, evict=True) as (dataset, documents):
                if ideal := ideal_records(dataset, self.split):
                    ideal_row["ideal reader"] = score_groups(ideal)
                for added, scorer in self._scorers(model, dataset):
                    name = f"{model}{added}"
                    records = records_of(scorer, tqdm(documents, name, unit=" documents"))
                    table[name] = score_groups(records)
                    seeds.setdefault(self._row(name, models), []).append(records)
                    groups = [uncertainty.group_sums(records, group) for group in Group]
                    sums += [[name, *row] for row in uncertainty.document_rows(groups)]
                    file = re.sub(r"\W+", "-", f"records-{self.split}{added}")
                    self._write(records, file, model, dataset)
        print_groups(f"perplexity on {corpus or self.split}", table | ideal_row)
        if self.against is not None:
            self._print_changes(seeds, dataset)
        if self.by_document:
            header = ["run", "document", *uncertainty.sum_columns(Group)]
            write_text(self.by_document, as_csv(header, sums))
            print(f"documents: {self.by_document}")
        return table | ideal_row

    def _open_vocabulary(self, models: list[str], corpus: str | None) -> dict[str, Any]:
        from dntm.model.baselines.ngram import NGram
        from dntm.reader.comparison import compare
        from dntm.reader.reader import Reader

        table: dict[str, Any] = {}
        for model in models:
            with self._reading(model, corpus, evict=True) as (dataset, documents):
                reader = Reader.from_pretrained(model, precision="single", without=self.without)
                own, ngram = _trained_on(model, dataset), None
                if "train" in own.splits and reader.vocabulary.ends:  # one row per word
                    ngram = NGram.of(own.documents("train"), reader.vocabulary)
                scores = compare(reader, tqdm(documents, model, unit=" documents"), ngram)
            table |= {f"{model}{self._left_out} {name}": score for name, score in scores.items()}
        head = [f"open vocabulary, {corpus or self.split}", "nats per word", "bits per character"]
        rows = [
            [name, f"{own['nats_per_word']:.3f}", f"{own['bits_per_character']:.3f}"]
            for name, own in table.items()
        ]
        print_table([head, *rows])
        return table

    def _scorers(self, model: str, dataset: Dataset) -> Iterator[tuple[str, "LanguageModel"]]:
        """The model, then the model with changes; with the name of what is changed."""
        if model == NGRAM:
            from dntm.model.baselines.ngram import NGram

            yield "", NGram.of(documents_of(dataset, "train"), dataset.vocabulary)
            return
        from dntm.model.scorer import Scorer

        scorer = self._model(model, dataset)
        yield "", scorer
        if self.without:
            yield self._left_out, Scorer(scorer.model.without(self.without), scorer.vocabulary)
        if self.cache:
            yield " + cache", self._cached(scorer, _trained_on(model, dataset))
        if self.exchange_memories and scorer.model.config.variant != "baseline":
            scorer.model.exchange_memories = True
            yield " + exchanged", scorer

    def _model(self, name: str, dataset: Dataset) -> "Scorer":
        """The best model of a run; ValueError if it has none, or a different vocabulary."""
        from dntm.model.scorer import Scorer
        from dntm.training.processes import device_of

        run = folder_of(name)
        if (run / "config.yaml").is_file() and not (run / "best").is_dir():
            raise ValueError(
                f"{run} has no weights: the run stopped before its first validation; "
                f"resume it with dntm train --output-dir {run} --resume"
            )
        model = Scorer.load(run)
        settings = read_yaml(run / "config.yaml") if (run / "config.yaml").is_file() else {}
        trained = settings.get("training") or {}
        model.model.exchange_memories = bool(trained.get("exchange_memories"))
        model.model.to(device_of(self.device))
        if model.vocabulary.ends and model.vocabulary != dataset.vocabulary:
            raise ValueError(f"{run} and {dataset.folder} have different vocabularies")
        return model

    @property
    def _left_out(self) -> str:
        return f" without {', '.join(self.without)}" if self.without else ""

    def _cached(self, scorer: "Scorer", dataset: Dataset) -> "NeuralCache":
        from dntm.model.baselines.neural_cache import NeuralCache

        if scorer.model.config.is_pretrained:
            raise ValueError("a neural cache needs one row per word, not pieces of words")
        if "dev" not in dataset.splits:
            raise ValueError(f"{dataset.folder} has no dev split to tune a cache on")
        found = NeuralCache.tune(scorer, documents_of(dataset, "dev"))
        print(f"cache: theta {found.theta:g}, weight {found.weight:.4g}", file=sys.stderr)
        return found

    def _check_against(self, models: list[str]) -> None:
        if self.against is None:
            return
        changes = [self._left_out] * bool(self.without) + [" + cache"] * self.cache
        changes += [" + exchanged"] * self.exchange_memories
        added = [f"{model}{change}" for model in models if model != NGRAM for change in changes]
        rows = dict.fromkeys(self._row(name, models) for name in [*models, *added])
        if self.against not in rows or len(rows) == 1:
            found = ", ".join(f'"{row}"' for row in rows)
            raise ValueError(f'--against "{self.against}", expected one of several rows: {found}')

    def _row(self, name: str, models: list[str]) -> str:
        """The name of a row in comparisons: without the seed if `against` names no single run."""
        single = re.split(" \\+ | without ", str(self.against))[0] in models
        return name if single else re.sub(r"-\d+(?= \+ | without |$)", "", name)

    def _print_changes(self, seeds: dict[str, list[Records]], dataset: Dataset) -> None:
        """Changes of perplexity from `against`, one row per model, one column per token group."""
        document = uncertainty.document_names(dataset.information)
        sums = {}
        for name, runs in seeds.items():
            by_group = {g: [uncertainty.group_sums(run, g) for run in runs] for g in Group}
            sums[name] = {
                group: uncertainty.whole_documents(uncertainty.stacked(own), document)
                for group, own in by_group.items()
            }
        if (base := sums.pop(str(self.against), None)) is None:
            raise ValueError(f'--against "{self.against}": this model has no memory')

        def change(own: Mapping[Group, uncertainty.DocumentSums], group: Group) -> str:
            if not base[group].documents:
                return ""
            found = uncertainty.paired_bootstrap(base[group], own[group])
            ratio, low, high = (100 * (v - 1) for v in (found.ratio, *found.ratio_interval))
            return f"{ratio:+.1f} % [{low:+.1f}, {high:+.1f}]"

        rows = [[f"against {self.against}", *(group.column for group in Group)]]
        rows += [[name, *(change(own, group) for group in Group)] for name, own in sums.items()]
        print_table(rows)

    def _cloze(self, models: list[str], corpus: str | None) -> dict[str, Any]:
        if NGRAM in models:
            raise ValueError("ngram has no memory of entities and cannot take the cloze test")
        table: dict[str, Any] = {}
        for model in models:
            with self._reading(model, corpus, evict=False) as (dataset, documents):
                texts = [ClozeText.of(text) for text in documents]
                if not any(text.gaps for text in texts):
                    raise ValueError(
                        f"{dataset.folder} has no gap in its {self.split} split: "
                        "expected an entity that is mentioned again after another entity"
                    )
                scorer = self._model(model, dataset)
                scorer.model = scorer.model.without(self.without)
                bar = tqdm(scorer.complete(texts), model, total=len(texts), unit=" documents")
                records = ClozeRecords.of(texts, bar)
                file = re.sub(r"\W+", "-", f"cloze-{self.split}{self._left_out}")
                self._write(records, file, model, dataset)
            table[model] = summarize_cloze(records)
        _print_cloze(f"cloze test on {corpus or self.split}", table)
        return table


def _print_cloze(title: str, models: Mapping[str, Mapping[str, float]]) -> None:
    """Table 4, one row per model; then the values of a random choice."""
    rows = [[title, "mean quantile", "accuracy", "reciprocal rank", "MQ after the gap", "gaps"]]
    names, chance = ("mean_quantile", "accuracy", "reciprocal_rank"), []
    for name, s in models.items():
        own = (*(s[n] for n in names), s["rest_mean_quantile"])
        random = (*(s[f"chance_{n}"] for n in names), s["chance_mean_quantile"])
        rows.append([name, *(f"{value:.3f}" for value in own), f"{s['gaps']:,}"])
        chance.append(("chance", *(f"{value:.3f}" for value in random), f"{s['gaps']:,}"))
    print_table([*rows, *dict.fromkeys(chance)])


def _own_dataset(run: Path) -> Path | None:
    """The dataset that a run was trained on; None if that is not known."""
    path = run / "config.yaml"
    if not path.is_file():
        return None
    settings = read_yaml(path)
    if "text" in settings:
        raise ValueError(f"{run} is a pretraining run, expected a language model (dntm train)")
    return typed(Path, settings.get("dataset"), f"{path}: dataset")  # type: ignore[no-any-return]


def _trained_on(model: str, other: Dataset) -> Dataset:
    """The dataset that a model was trained on, or the other one if that is not known."""
    own = _own_dataset(folder_of(model))
    return other if own is None else Dataset.open(own)


def _is_model(word: str) -> bool:
    files = ("config.json", "config.yaml", "best/config.json")
    return word in (DEFAULT, NGRAM) or any((Path(word) / name).is_file() for name in files)


def _is_dataset(word: str) -> bool:
    return (Path(word) / "dataset.json").is_file()
