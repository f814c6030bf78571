"""`dntm export`: a trained model as a folder for others.

The folder has a model card: what the model learned from, how, and what it came to, from its run's
own files.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
import yaml

from dntm.evaluation.groups import TITLES
from dntm.files import new_folder
from dntm.settings import read_json, read_yaml

_LIMITS = (
    "What the model has come to think of a name says what contexts it was seen in, not what is "
    "true of anybody. It knows the languages and kinds of text it learned from, and no others. "
    "Of a model that has read no more than some million words, continuations make no sense for "
    "long, and surprisals are no substitute for those of a large language model. What its texts "
    "say of people and groups, it repeats."
)


@dataclass(frozen=True, kw_only=True)
class Export:
    """Write a run's best weights, in half precision, with vocabulary, settings and model card."""

    run_folder: tyro.conf.Positional[Path]
    """A finished run (dntm train)."""
    static: Path | None = None
    """The finished run of a baseline, or its checkpoint, to stand beside the model as its static
    twin."""
    output_dir: Path
    """The folder to make."""
    note: str = ""
    """More about the data for the model card, such as licences."""
    half: bool = True
    """Two bytes a weight instead of four."""
    overwrite: bool = False
    """Replace the folder if it exists."""

    def run(self) -> None:
        """Write the folder and say how large it is."""
        from dntm.model.checkpoint import write_checkpoint
        from dntm.model.text_model import TextModel
        from dntm.reader.engine import baseline

        _read_yaml(self.run_folder / "config.yaml")  # a checkpoint alone has no card
        model = TextModel.load(self.run_folder)
        static = baseline(self.static, model.vocabulary) if self.static else None
        card = model_card(self.run_folder, self.static, self.note)
        with new_folder(self.output_dir, overwrite=self.overwrite) as folder:
            write_checkpoint(model.model, model.vocabulary, folder, half=self.half)
            _copy_cache(self.run_folder, folder)
            (folder / "README.md").write_text(card, encoding="utf-8")
            if static is not None:
                (folder / "static").mkdir()
                write_checkpoint(static, model.vocabulary, folder / "static", half=self.half)
                _copy_cache(self.static or self.run_folder, folder / "static")
        size = sum(path.stat().st_size for path in self.output_dir.rglob("*") if path.is_file())
        print(f"model: {self.output_dir} ({size / 1e6:.1f} MB)")


def _copy_cache(run: Path, folder: Path) -> None:
    """Let a checkpoint carry the caches that were tuned for the run's weights, if any."""
    from dntm.model.cache import CACHES
    from dntm.model.checkpoint import best_of

    for kind in CACHES.values():
        if found := kind.load(best_of(run)):
            found.save(folder)


def model_card(run: Path, static: Path | None = None, note: str = "") -> str:
    """The card in Markdown; `static` is the run of the baseline beside the model, `note` tells
    more about the data.
    """
    try:
        return _card(run, static, note)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{run} is damaged: no model card can be made of it: {error!r}") from None


def _card(run: Path, static: Path | None, note: str) -> str:
    config = _read_yaml(run / "config.yaml")
    if "text" in config:
        raise ValueError(f"{run} is a pretraining run, expected one of dntm train")
    dataset = read_json(Path(config["dataset"]) / "dataset.json")
    sizes = config["model"]
    parts = [
        "# Model card",
        (
            f"A Dynamic Neural Text Model, variant {sizes['variant']}, merging {sizes['merging']}: "
            "it builds the meaning of names and unknown words while it reads a text."
        ),
        "## Data",
        _data(dataset, config) + (f"\n- {note}" if note else ""),
        "## Training",
        _training(config, static),
        "## Perplexity",
        _perplexities(run, static),
        "## What it is not good for",
        _LIMITS,
    ]
    return "\n\n".join(parts) + "\n"


def _data(dataset: dict[str, Any], config: dict[str, Any]) -> str:
    source, counts = dataset["source"], dataset["counts"]["train"]
    lines = [
        f"- Language modelling: {source['corpus']}",
        f"- In training: {counts['documents']:,} documents, {counts['tokens']:,} tokens",
        f"- Vocabulary: {dataset['vocabulary']:,} rows",
        f"- Licences: {source['licence']}",
    ]
    if config["pretrained"]:
        text = _read_yaml(Path(config["pretrained"]) / "config.yaml")
        store = read_json(Path(config["pretrained"]) / "text" / "text.json")
        names = ", ".join(Path(path).name for path in text["text"])
        lines.append(f"- Pretraining: {names}, {store['tokens']:,} words in short sentences.")
    return "\n".join(lines)


def _training(config: dict[str, Any], static: Path | None) -> str:
    shown = {"seed": config["seed"], "model": config["model"], "training": config["training"]}
    lines = ["Trained with these settings of `dntm train`:", "", "```"]
    lines += yaml.safe_dump(shown, sort_keys=False).splitlines()
    lines.append("```")
    if config.get("start_from"):
        start = Path(config["start_from"]).name
        lines += ["", f"Its weights began as those of the run {start}, where they fit."]
    if static:
        pointer = " and without a pointer" if config["model"].get("pointer") else ""
        lines += ["", f"`static/` is a baseline without dynamic embeddings{pointer}."]
    return "\n".join(lines)


def _perplexities(run: Path, static: Path | None) -> str:
    from dntm.training.run_folder import RunFolder

    results = {"model": RunFolder(run).read_results()["splits"]}
    if static:
        results["static"] = _scored(static, Path(_read_yaml(run / "config.yaml")["dataset"]))
    lines = []
    for split in results["model"]:
        lines += [
            f"| {split} | {' | '.join(results)} | tokens |",
            f"| --- |{' ---: |' * (len(results) + 1)}",
        ]
        for group, title in TITLES.items():
            scores = [found[split][group] for found in results.values()]
            values = " | ".join(f"{score['perplexity']:.1f}" for score in scores)
            lines.append(f"| {title.full} | {values} | {scores[0]['tokens']:,} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def _scored(static: Path, dataset: Path) -> dict[str, Any]:
    """What a baseline's run says of a dataset; scored now where it was trained on another one."""
    from dntm.corpus.dataset import Dataset
    from dntm.evaluation.groups import as_plain, score_groups
    from dntm.model.text_model import TextModel
    from dntm.training.run_folder import RunFolder

    if (static / "config.yaml").is_file():
        results = RunFolder(static).read_results()
        if Path(_read_yaml(static / "config.yaml")["dataset"]) == dataset:
            return dict(results["splits"])
    model, texts = TextModel.load(static), Dataset.open(dataset)
    return {
        split: as_plain(score_groups(model.records(texts.documents(split))))
        for split in texts.splits
        if split != "train"
    }


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        return read_yaml(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
