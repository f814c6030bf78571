"""The runs: when, how long, with how much memory, on which machine and version of the program."""

from typing import Any

from dntm.report.document import Block, Entry, Items, Row, Scalar, Section, Table
from dntm.report.numbers import NONE, duration, listed
from dntm.report.results import Run, StudyResults


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
        items.insert(0, ("Pretraining", _pretraining(before, places)))
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


def _pretraining(sittings: list[dict[str, Any]], places: list[str]) -> str:
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
