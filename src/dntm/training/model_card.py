"""The model card: what a model learned from, how, and what it came to, from its run's own files."""

from pathlib import Path
from typing import Any

import yaml

from dntm.evaluation.groups import TITLES
from dntm.settings import read_json, read_yaml
from dntm.training.run_folder import RunFolder

_LIMITS = (
    "What the model has come to think of a name says what contexts it was seen in, not what is "
    "true of anybody. It knows the languages and kinds of text it learned from, and no others. "
    "Of a model that has read no more than some million words, continuations make no sense for "
    "long, and surprisals are no substitute for those of a large language model. What its texts "
    "say of people and groups, it repeats."
)


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
        lines += ["", "`static/` is a baseline without dynamic embeddings, trained alike."]
    return "\n".join(lines)


def _perplexities(run: Path, static: Path | None) -> str:
    runs = {"model": run} | ({"static": static} if static else {})
    results = {name: RunFolder(path).read_results()["splits"] for name, path in runs.items()}
    lines = []
    for split in results["model"]:
        lines += [
            f"| {split} | {' | '.join(runs)} | tokens |",
            f"| --- |{' ---: |' * (len(runs) + 1)}",
        ]
        for group, title in TITLES.items():
            scores = [results[name][split][group] for name in runs]
            values = " | ".join(f"{score['perplexity']:.1f}" for score in scores)
            lines.append(f"| {title.full} | {values} | {scores[0]['tokens']:,} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        return read_yaml(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
