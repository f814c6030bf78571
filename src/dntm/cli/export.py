"""`dntm export` writes a trained model as a small folder, with a model card.

`dntm spelling` fits the string probabilities of a model on other texts.
"""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated

import tyro
import yaml
from jinja2 import TemplateError

from dntm.corpus.dataset import Dataset
from dntm.evaluation.groups import Group, score_groups
from dntm.evaluation.records import records_of
from dntm.files import folder_of, new_folder
from dntm.settings import read_json, read_yaml


@dataclass(frozen=True, kw_only=True)
class Export:
    """Export a run as a small folder with its best weights, vocabulary, settings and model card."""

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """A finished run of dntm train."""
    static: Path | None = None
    """A run or checkpoint of the static baseline (variant A), to export with the model."""
    output_dir: Path
    """The folder to create."""
    note: str = ""
    """A note for the model card, such as the licenses of the data."""
    overwrite: bool = False
    """Replace an existing folder."""

    def run(self) -> None:
        """Write the folder and print its size."""
        from dntm.model.checkpoint import best_of, write_checkpoint
        from dntm.model.scorer import Scorer
        from dntm.model.spelling import Spelling
        from dntm.reader.engine import baseline

        model = Scorer.load(self.run_folder)
        static = baseline(self.static, model.vocabulary) if self.static else None
        card = model_card(self.run_folder, self.static, self.note)
        with new_folder(self.output_dir, overwrite=self.overwrite) as folder:
            write_checkpoint(model.model, model.vocabulary, folder, half=True)
            (folder / "README.md").write_text(card, encoding="utf-8")
            if (spelling := Spelling.load(best_of(self.run_folder))) is not None:
                spelling.save(folder)
            if static is not None:
                (folder / "static").mkdir()
                write_checkpoint(
                    static, model.vocabulary, folder / "static", half=True, beside=model.model
                )
        size = sum(path.stat().st_size for path in self.output_dir.rglob("*") if path.is_file())
        print(f"model: {self.output_dir} ({size / 1e6:.1f} MB)")


@dataclass(frozen=True, kw_only=True)
class FitSpelling:
    """Fit the string probabilities of a model on the train and dev splits of datasets."""

    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """A run folder, a checkpoint, or "default" (the bundled model). Replaces its spelling.json."""
    dataset: tuple[Path, ...]
    """Datasets with the vocabulary of the model (dntm data build --vocabulary-of MODEL)."""

    def run(self) -> None:
        """Write spelling.json and print its size and weights."""
        from dntm.model.checkpoint import best_of
        from dntm.model.scorer import Scorer
        from dntm.model.spelling import FILE, Spelling
        from dntm.model.strings import fit_pieces

        folder = best_of(folder_of(self.model))
        model = Scorer.load(folder)
        datasets = [Dataset.open(path).check_content() for path in self.dataset]
        for dataset in datasets:
            if model.vocabulary.ends and dataset.vocabulary != model.vocabulary:
                raise ValueError(f"{self.model} and {dataset.folder} have different vocabularies")
        train = chain.from_iterable(dataset.documents("train") for dataset in datasets)
        dev = chain.from_iterable(dataset.documents("dev") for dataset in datasets)
        if model.vocabulary.ends:
            found = Spelling.fit(train, dev, model.vocabulary)
            weights = f"{len(found.counts):,} strings, lambda {found.known:.3f}"
        else:
            found = fit_pieces(model.model, model.vocabulary, dev)
            weights = f"a new name ends after a piece with probability {found.ends:.3f}"
        found.save(folder)
        print(f"spelling: {folder / FILE} ({weights})")


def model_card(run: Path, static: Path | None = None, note: str = "") -> str:
    """The card in Markdown; `static` is the run of the static baseline."""
    try:
        return _card(run, static, note)
    except (LookupError, TypeError, AttributeError, TemplateError) as error:
        raise ValueError(f"{run} is damaged: cannot write its model card: {error!r}") from None


def _card(run: Path, static: Path | None, note: str) -> str:
    from dntm.study.report import environment
    from dntm.training.run_folder import RunFolder

    config = read_yaml(run / "config.yaml")
    if "text" in config:
        raise ValueError(f"{run} is a pretraining run, expected a run of dntm train")
    results = {"model": RunFolder(run).read_results()["splits"]}
    if static:
        from dntm.model.scorer import Scorer

        baseline, texts = Scorer.load(static), Dataset.open(Path(config["dataset"]))
        results["static"] = {
            split: score_groups(records_of(baseline, texts.documents(split)))
            for split in results["model"]
        }
    pretraining = None
    if config["pretrained"]:
        folder = Path(config["pretrained"])
        names = [Path(path).name for path in read_yaml(folder / "config.yaml")["text"]]
        tokens = read_json(folder / "text" / "text.json")["tokens"]
        pretraining = {"names": names, "tokens": tokens}
    settings = {name: config[name] for name in ("seed", "model", "training")}
    template = environment("dntm.cli", autoescape=False).get_template("model_card.md")
    return template.render(
        config=config,
        dataset=read_json(Path(config["dataset"]) / "dataset.json"),
        pretraining=pretraining,
        note=note,
        settings=yaml.safe_dump(settings, sort_keys=False),
        start_from=Path(config["start_from"]).name if config.get("start_from") else None,
        static=static,
        results=results,
        groups=list(Group),
    )
