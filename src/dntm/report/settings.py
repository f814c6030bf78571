"""What was run: preset, corpus, dataset, pretraining, sizes and recipe, as a list."""

import dataclasses
from pathlib import Path
from typing import Any

from dntm.corpus.catalog import CORPORA
from dntm.experiments.study import StudyConfig
from dntm.report.document import Items, Section
from dntm.report.numbers import listed
from dntm.report.results import StudyResults

OF_THE_CELL = {"vocabulary", "entities", "variant", "merging"}
"""Settings of the model that are the cell's and the dataset's, not the study's."""


def corpus_name(config: StudyConfig) -> str:
    """The corpus without the folders it stands in."""
    return config.corpus if config.corpus in CORPORA else Path(config.corpus).name


def settings(results: StudyResults) -> Section:
    """All settings."""
    config, dataset = results.config, results.dataset
    items = [("Preset", config.preset or "none"), ("Models", ", ".join(config.models))]
    items += [("Seeds", ", ".join(map(str, config.seeds))), ("Corpus", corpus_name(config))]
    if dataset:
        source = dataset["source"]
        known = [source["version"], f"files {source['digest'][:16]}" if source["digest"] else ""]
        items.append(("Version of the corpus", ", ".join(filter(None, known)) or "made here"))
        items.append(("Licence of the corpus", source["licence"]))
        items.append(("Dataset", f"{dataset['vocabulary']:,} rows, hash {dataset['content_hash']}"))
    build = dataset.get("settings") or dataclasses.asdict(config.build)
    items.append(("Dataset settings", _listed({k: v for k, v in build.items() if k != "reading"})))
    items.append(("Pretraining", _pretraining(results)))
    sizes = {k: v for k, v in dataclasses.asdict(config.model).items() if k not in OF_THE_CELL}
    items.append(("Model", _listed(sizes)))
    items.append(("Training", _listed(dataclasses.asdict(config.training))))
    return Section("settings", "Settings", (Items(tuple(items)),))


def text_names(results: StudyResults) -> str:
    """What pretraining reads, without the folders it stands in."""
    given = results.pretraining.settings.get("text") or results.config.text
    return listed([Path(path).name for path in given])


def _pretraining(results: StudyResults) -> str:
    config, run = results.config, results.pretraining
    if not config.begins_pretrained:
        return "none"
    made = f"the run {Path(config.pretrained).name}, made before" if config.pretrained else ""
    training = run.settings.get("training") or dataclasses.asdict(config.pretraining)
    if config.pretrained and not run.settings:
        return made
    parts = [made, f"{training['iterations']:,} updates on text given as {text_names(results)}"]
    if run.text:
        files = len(run.text["files"])
        parts.append(
            f"{files} file{'' if files == 1 else 's'}, {run.text['sentences']:,} sentences, "
            f"{run.text['tokens']:,} words, {run.text['rows']:,} rows"
        )
    return "; ".join(filter(None, parts))


def _listed(values: dict[str, Any]) -> str:
    return "; ".join(f"{name} {_words(value)}" for name, value in values.items())


def _words(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "as the corpus has it" if value is None else str(value)
