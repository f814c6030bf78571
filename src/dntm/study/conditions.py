"""How the numbers of a report came about: settings, departures from the paper, runs, machines."""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dntm.corpus.catalog import CORPORA
from dntm.corpus.dataset_builder import PAPERS_BUILD
from dntm.study.config import PRESETS, StudyConfig
from dntm.study.document import (
    NONE,
    Block,
    Entry,
    Items,
    Paragraph,
    Row,
    Scalar,
    Section,
    Table,
    duration,
    listed,
)
from dntm.study.paper import PAPER_TABLE_1
from dntm.study.recipes import PRETRAINING
from dntm.study.results import Run, StudyResults

OF_THE_CELL = {"vocabulary", "entities", "variant", "merging"}
"""Settings of the model that are the cell's and the dataset's, not the study's."""
INNERMOST = "the innermost of nested mentions is kept"
"""Only where the dataset was built so."""
DECISIONS = (
    (
        "the GRU is Cho et al.'s, the reset gate before the product, with one bias; one merging "
        "GRU is shared by the input and output layer"
    ),
    (
        "several mentions of an entity in one sentence are all encoded with the embeddings from "
        "before the sentence and merged left to right at its end"
    ),
    "the loss of an update is the mean surprisal over all tokens predicted since the last one",
    (
        "candidates of the cloze test are the entities of earlier sentences, and a mention of an "
        "entity that only its own sentence has brought in is no gap"
    ),
    "in the cloze test log-likelihoods within 1e-4 nats are ties, which count against the model",
    "Figure 6 counts reappearing entities, and the bins of all figures are ours",
)
"""Where the paper is silent (docs/departures.md)."""
PRETRAINING_DECISIONS = (
    "negatives are drawn in proportion to counts to the power of .75",
    "batches of pretraining hold sentences of like length",
    "<unk> is hidden and drawn like any other word",
    "pretraining updates with Adam and cuts gradients as training does",
    "every word of the dataset has a row in pretraining, however rare it is in its text",
)
_ENTITIES = {
    "chains": "coreference chains",
    "names": "names (runs of capitalised words)",
    "unknown": "unknown words that come back",
    "resolver": "chains found by a coreference model",
}
_PAPERS_BUILD = {**dataclasses.asdict(PAPERS_BUILD.resolved()), "entities": ["chains"]}
_NOT_TOLD = {"documents", "held_out", "validations", "vocabulary_size"}
"""Settings of pretraining of which the paper says nothing, or which change no weight."""


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
    items.append(("Pretraining", _pretraining_settings(results)))
    sizes = {k: v for k, v in dataclasses.asdict(config.model).items() if k not in OF_THE_CELL}
    items.append(("Model", _listed(sizes)))
    items.append(("Training", _listed(dataclasses.asdict(config.training))))
    return Section("settings", "Settings", (Items(tuple(items)),))


def text_names(results: StudyResults) -> str:
    """What pretraining reads, without the folders it stands in."""
    given = results.pretraining.settings.get("text") or results.config.text
    return listed([Path(path).name for path in given])


def _pretraining_settings(results: StudyResults) -> str:
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


def departures(results: StudyResults) -> Section:
    """Both lists."""
    config, paper = results.config, PRESETS["paper"]
    items = []
    if config.corpus != "ontonotes":
        items.append(f"the corpus is {corpus_name(config)}, not OntoNotes")
    items += _of_the_dataset(results)
    items += _of_pretraining(results)
    for part in ("model", "training"):
        theirs, ours = (dataclasses.asdict(getattr(c, part)) for c in (paper, config))
        items += _differences(part, ours, theirs, OF_THE_CELL)
    decisions = list(DECISIONS)
    if results.dataset.get("settings", {}).get("nested") == "innermost":
        decisions.insert(0, INNERMOST)
    if config.begins_pretrained:
        decisions += PRETRAINING_DECISIONS
    silent = Paragraph("Where the paper is silent:")
    blocks = (Items(tuple(items)), silent, Items(tuple(decisions)))
    return Section("departures", "Departures from the paper", blocks)


def _of_the_dataset(results: StudyResults) -> Iterator[str]:
    dataset = results.dataset
    if not dataset:
        return
    built = dataset["settings"]
    counts = [dataset["counts"][split]["documents"] for split in PAPER_TABLE_1]
    paper = [row[0] for row in PAPER_TABLE_1.values()]
    if counts != paper:
        ours, theirs = (" / ".join(f"{n:,}" for n in numbers) for numbers in (counts, paper))
        yield f"{ours} documents or parts to train, validate and test on, the paper's {theirs}"
    if longest := built.get("max_sentences"):
        yield f"documents are cut into parts of at most {longest} sentences"
    kinds = built.get("entities")
    theirs = "are annotated coreference chains"
    if isinstance(kinds, int):  # storyworld's
        yield f"stories are made up, with at most {kinds} entities, the paper's entities {theirs}"
    elif kinds and list(kinds) != ["chains"]:
        names = listed([_ENTITIES.get(kind, kind) for kind in kinds])
        yield f"entities are {names}, the paper's {theirs}"
    if built.get("nested") == "outermost":
        yield "the outermost of nested mentions is kept"
    if dataset["vocabulary"] != _PAPERS_BUILD["vocabulary_size"]:
        yield f"the vocabulary has {dataset['vocabulary']:,} rows, the paper's 10,000"
    told = {"max_sentences", "entities", "nested", "vocabulary_size"}
    shared = {name: value for name, value in built.items() if name in _PAPERS_BUILD}
    yield from _differences("dataset", shared, _PAPERS_BUILD, told)
    reading = built.get("reading", {})
    if limit := reading.get("limit"):
        yield f"only the first {limit} documents of the corpus are read"
    if patterns := reading.get("leave_out"):
        yield f"documents whose names match {listed(patterns)} are left out"


def _of_pretraining(results: StudyResults) -> Iterator[str]:
    config = results.config
    if not config.begins_pretrained:
        yield (
            "no pretraining: context encoder and embeddings begin at random and are trained "
            "along, where the paper pretrained both on Gigaword and kept the encoder fixed"
        )
        return
    names = text_names(results)
    if not names:
        yield "the text of the pretraining that was given is not known"
    elif "gigaword" not in names.lower():
        yield f"the text of the pretraining is not Gigaword but what was given as {names}"
    sizes, recipe, store = PRETRAINING["paper"]
    ours = results.pretraining.settings
    if not ours and config.text:
        ours = {"training": config.pretraining, "store": config.store}
        ours = {part: dataclasses.asdict(values) for part, values in ours.items()}
    for part, theirs in (("model", sizes), ("training", recipe), ("store", store)):
        paper = dataclasses.asdict(theirs)
        yield from _differences("pretraining", ours.get(part, {}), paper, _NOT_TOLD)


def _differences(
    where: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], leave_out: set[str]
) -> Iterator[str]:
    for name, value in ours.items():
        if name not in leave_out and name in theirs and value != theirs[name]:
            yield f"{where}.{name} is {value}, the paper's {theirs[name]}"


def runs(results: StudyResults) -> Section:
    """Seeds, dates, time and memory of each run, on which machine and with which versions."""
    before = results.pretraining.sittings
    sat = [*before, *(sitting for run in results.runs for sitting in run.sittings)]
    places = list(dict.fromkeys(map(_place, sat)))
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
    items = [(f"Machine {i}", place) for i, place in enumerate(places, start=1)]
    if before:
        items.insert(0, ("Pretraining", _pretraining_time(before, places)))
    blocks: tuple[Block, ...] = (table,) if results.runs else ()
    return Section("runs", "Runs and machines", (*blocks, Items(tuple(items))) if items else blocks)


def notes(results: StudyResults) -> list[str]:
    """What makes the runs hard to compare: other versions of the program."""
    commits: dict[str, list[str]] = {}
    for run in results.runs:
        for commit in dict.fromkeys(sitting["commit"] for sitting in run.sittings):
            if commit:
                commits.setdefault(commit, []).append(run.cell.name)
    found = []
    if len(commits) > 1:
        each = [f"{_short(commit)} ({listed(names)})" for commit, names in commits.items()]
        found.append(
            f"The runs were made with different commits of the program: {'; '.join(each)}. "
            "Differences between them may be due to that."
        )
    changed = [name for commit, names in commits.items() if commit.endswith("+") for name in names]
    if changed:
        found.append(f"Made with changes to the program that no commit holds: {listed(changed)}.")
    return found


def _short(commit: str) -> str:
    return commit[:10] + ("+" if commit.endswith("+") else "")


def _pretraining_time(sittings: list[dict[str, Any]], places: list[str]) -> str:
    seconds = duration(sum(sitting["seconds"] for sitting in sittings))
    memory = max(sitting["peak_memory_gb"] for sitting in sittings)
    on = listed(list(dict.fromkeys(str(places.index(_place(s)) + 1) for s in sittings)))
    times = "1 sitting" if len(sittings) == 1 else f"{len(sittings)} sittings"
    return f"{seconds} in {times}, {memory:.2f} GB, on machine {on}"


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
