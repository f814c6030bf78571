"""Under which conditions the numbers came about: settings, departures from the paper, runs."""

import dataclasses
from pathlib import Path
from typing import Any

from dntm.corpus.catalog import CORPORA
from dntm.experiments.presets import PRESETS
from dntm.experiments.study import StudyConfig
from dntm.report.document import Entry, Items, Paragraph, Row, Scalar, Section, Table
from dntm.report.numbers import NONE, duration, listed
from dntm.report.results import Run, StudyResults

DECISIONS = (
    "the innermost of nested mentions is kept",
    (
        "the GRU is Cho et al.'s, the reset gate before the product, with one bias; one merging "
        "GRU is shared by the input and output layer"
    ),
    (
        "several mentions of an entity in one sentence are all encoded with the embeddings from "
        "before the sentence and merged left to right at its end"
    ),
    "the loss of an update is the mean surprisal over all tokens predicted since the last one",
)
"""Where the paper is silent (docs/departures.md)."""
_OF_THE_CELL = {"vocabulary", "entities", "variant", "merging"}


def corpus_name(config: StudyConfig) -> str:
    """The corpus without the folders it stands in."""
    return config.corpus if config.corpus in CORPORA else Path(config.corpus).name


def settings(results: StudyResults) -> Section:
    """What was run, as a list."""
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
    items.append(
        ("Dataset settings", _settings({k: v for k, v in build.items() if k != "reading"}))
    )
    items.append(("Pretraining", _pretraining(config)))
    sizes = {k: v for k, v in dataclasses.asdict(config.model).items() if k not in _OF_THE_CELL}
    items.append(("Model", _settings(sizes)))
    items.append(("Training", _settings(dataclasses.asdict(config.training))))
    return Section("settings", "Settings", (Items(tuple(items)),))


def departures(results: StudyResults) -> Section:
    """What differs from the paper's own study."""
    config, paper = results.config, PRESETS["paper"]
    items = []
    if config.corpus != "ontonotes":
        items.append(f"the corpus is {corpus_name(config)}, not OntoNotes")
    if not config.begins_pretrained:
        items.append(
            "no pretraining: context encoder and embeddings begin at random and are trained "
            "along, where the paper pretrained both on Gigaword and kept the encoder fixed"
        )
    else:
        items.append("pretraining reads other text than Gigaword")
    for part in ("model", "training"):
        for field in dataclasses.fields(getattr(paper, part)):
            theirs, ours = (getattr(getattr(c, part), field.name) for c in (paper, config))
            if theirs != ours and field.name not in _OF_THE_CELL:
                items.append(f"{part}.{field.name} is {ours}, the paper's {theirs}")
    silent = Paragraph("Where the paper is silent, for every study:")
    blocks = (Items(tuple(items)), silent, Items(DECISIONS))
    return Section("departures", "Departures from the paper", blocks)


def runs(results: StudyResults) -> Section:
    """Seeds, dates, time and memory of each run, on which machine and with which versions."""
    places = list(
        dict.fromkeys(_place(sitting) for run in results.runs for sitting in run.sittings)
    )
    total = sum(sitting["seconds"] for run in results.runs for sitting in run.sittings)
    table = Table(
        key="runs",
        title="Runs",
        caption=f"{len(results.runs)} finished runs took {duration(total)} in all. Time adds up "
        "all sittings of a run that was stopped and taken up again; memory is the highest of them.",
        header=("Run", "Began", "Ended", "Time", "Memory", "Best dev perplexity", "Sittings", "On"),
        words=1,
        rows=tuple(_run_row(run, places) for run in results.runs),
        data=tuple(_run_data(run, places) for run in results.runs),
    )
    where = Items(tuple((f"Machine {i}", place) for i, place in enumerate(places, start=1)))
    return Section("runs", "Runs and machines", (table, where) if results.runs else ())


def _settings(values: dict[str, Any]) -> str:
    return "; ".join(f"{name} {_words(value)}" for name, value in values.items())


def _words(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "as the corpus has it" if value is None else str(value)


def _pretraining(config: StudyConfig) -> str:
    if config.pretrained:
        return f"the run {Path(config.pretrained).name}, made before"
    if not config.text:
        return "none"
    names = [Path(path).name for path in config.text]
    return f"{config.pretraining_iterations:,} updates on {listed(names)}"


def _place(sitting: dict[str, Any]) -> str:
    machine, versions = sitting["machine"], sitting["versions"]
    memory = f", {machine['memory_gb']} GB" if machine["memory_gb"] else ""
    known = ", ".join(f"{name} {number}" for name, number in versions.items() if number)
    commit = f", commit {sitting['commit']}" if sitting["commit"] else ""
    threads = f"{sitting['threads']} thread{'' if sitting['threads'] == 1 else 's'} a run"
    return (
        f"{machine['processor']}, {machine['cores']} cores{memory}, {machine['system']}; "
        f"{threads}; {known}{commit}"
    )


def _run_data(run: Run, places: list[str]) -> dict[str, Scalar]:
    sittings = run.sittings
    best = min((v["dev"]["all"] for v in run.validations), default=None)
    return {
        "run": run.cell.name,
        "model": run.cell.model.name,
        "seed": run.cell.seed,
        "began": sittings[0]["began"] if sittings else None,
        "ended": sittings[-1]["ended"] if sittings else None,
        "seconds": round(sum(s["seconds"] for s in sittings), 1),
        "peak_memory_gb": max((s["peak_memory_gb"] for s in sittings), default=None),
        "best_dev_perplexity": best,
        "sittings": len(sittings),
        "machines": " ".join(dict.fromkeys(str(places.index(_place(s)) + 1) for s in sittings)),
    }


def _run_row(run: Run, places: list[str]) -> Row:
    data = _run_data(run, places)
    memory, best = data["peak_memory_gb"], data["best_dev_perplexity"]
    words = (
        str(data["run"]),
        str(data["began"] or NONE),
        str(data["ended"] or NONE),
        duration(float(data["seconds"] or 0)),
        NONE if memory is None else f"{memory:.2f} GB",
        NONE if best is None else f"{best:.1f}",
        str(data["sittings"]),
        str(data["machines"] or NONE),
    )
    return Row(tuple(Entry(word) for word in words))
