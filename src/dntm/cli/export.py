"""`dntm export`: a trained model as a small folder, with a model card made from its run's files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
import yaml

from dntm.evaluation.groups import Group
from dntm.files import new_folder
from dntm.settings import read_json, read_yaml

_LIMITS = (
    "The inferred meaning of a name reflects the contexts in which it was read, not facts about "
    "anybody. The model knows only the languages and kinds of text that it was trained on. A model "
    "trained on a few million words does not produce coherent continuations, and its surprisals do "
    "not replace those of a large language model. It repeats what its texts say about people and "
    "groups."
)


@dataclass(frozen=True, kw_only=True)
class Export:
    """Export a run as a small folder: best weights, vocabulary, settings and model card."""

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """A finished run of dntm train."""
    static: Path | None = None
    """A run or checkpoint without dynamic embeddings, exported as the model's static baseline."""
    output_dir: Path
    """The folder to create."""
    note: str = ""
    """A note on the data for the model card, such as its licenses."""
    overwrite: bool = False
    """Replace an existing folder."""

    def run(self) -> None:
        """Write the folder and print its size."""
        from dntm.model.checkpoint import write_checkpoint
        from dntm.model.scorer import Scorer
        from dntm.reader.engine import baseline

        _read_yaml(self.run_folder / "config.yaml")  # a checkpoint alone has no card
        model = Scorer.load(self.run_folder)
        static = baseline(self.static, model.vocabulary) if self.static else None
        card = model_card(self.run_folder, self.static, self.note)
        with new_folder(self.output_dir, overwrite=self.overwrite) as folder:
            write_checkpoint(model.model, model.vocabulary, folder, half=True)
            (folder / "README.md").write_text(card, encoding="utf-8")
            if static is not None:
                (folder / "static").mkdir()
                write_checkpoint(static, model.vocabulary, folder / "static", half=True)
        size = sum(path.stat().st_size for path in self.output_dir.rglob("*") if path.is_file())
        print(f"model: {self.output_dir} ({size / 1e6:.1f} MB)")


def model_card(run: Path, static: Path | None = None, note: str = "") -> str:
    """The card in Markdown; `static` is the run of the static baseline."""
    try:
        return _card(run, static, note)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{run} is damaged: cannot write its model card: {error!r}") from None


def _card(run: Path, static: Path | None, note: str) -> str:
    config = _read_yaml(run / "config.yaml")
    if "text" in config:
        raise ValueError(f"{run} is a pretraining run, expected a run of dntm train")
    dataset = read_json(Path(config["dataset"]) / "dataset.json")
    model = config["model"]
    parts = [
        "# Model card",
        (
            f"A Dynamic Neural Text Model, variant {model['variant']}, merging {model['merging']}. "
            "It builds embeddings of names and unknown words while it reads a text."
        ),
        "## Data",
        _data(dataset, config) + (f"\n- {note}" if note else ""),
        "## Training",
        _training(config, static),
        "## Perplexity",
        _perplexities(run, static, Path(config["dataset"])),
        "## Limitations",
        _LIMITS,
    ]
    return "\n\n".join(parts) + "\n"


def _data(dataset: dict[str, Any], config: dict[str, Any]) -> str:
    source, counts = dataset["source"], dataset["counts"]["train"]
    lines = [
        f"- Language modeling: {source['corpus']}",
        f"- Training split: {counts['documents']:,} documents, {counts['tokens']:,} tokens",
        f"- Vocabulary: {dataset['vocabulary']:,} rows",
        f"- Licenses: {source['license']}",
    ]
    if config["pretrained"]:
        text = _read_yaml(Path(config["pretrained"]) / "config.yaml")
        store = read_json(Path(config["pretrained"]) / "text" / "text.json")
        names = ", ".join(Path(path).name for path in text["text"])
        lines.append(f"- Pretraining: {names}, {store['tokens']:,} words in short sentences")
    return "\n".join(lines)


def _training(config: dict[str, Any], static: Path | None) -> str:
    shown = {"seed": config["seed"], "model": config["model"], "training": config["training"]}
    text = f"Settings of `dntm train`:\n\n```\n{yaml.safe_dump(shown, sort_keys=False)}```"
    if config.get("start_from"):
        text += f"\n\nInitialized from the weights of the run {Path(config['start_from']).name}."
    if static:
        text += "\n\n`static/` is a baseline without dynamic embeddings."
    return text


def _perplexities(run: Path, static: Path | None, dataset: Path) -> str:
    """One table per split, one column per model."""
    from dntm.training.run_folder import RunFolder

    results = {"model": RunFolder(run).read_results()["splits"]}
    if static:
        results["static"] = _scores(static, dataset, list(results["model"]))
    tables = []
    for split in results["model"]:
        lines = [
            f"| {split} | {' | '.join(results)} | tokens |",
            f"| --- |{' ---: |' * (len(results) + 1)}",
        ]
        for group in Group:
            scores = [found[split][group] for found in results.values()]
            values = " | ".join(f"{score['perplexity']:.1f}" for score in scores)
            lines.append(f"| {group.label} | {values} | {scores[0]['tokens']:,} |")
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def _scores(static: Path, dataset: Path, splits: list[str]) -> dict[str, Any]:
    """The scores of a baseline by split."""
    from dntm.corpus.dataset import Dataset
    from dntm.evaluation.groups import score_groups
    from dntm.evaluation.records import records_of
    from dntm.model.scorer import Scorer

    model, texts = Scorer.load(static), Dataset.open(dataset)
    return {split: score_groups(records_of(model, texts.documents(split))) for split in splits}


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        return read_yaml(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
