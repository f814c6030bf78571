"""`dntm reproduce` runs a study; `dntm report` rewrites its report."""

import dataclasses
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from dntm.cli.runs import print_table
from dntm.files import remove_stale_files
from dntm.settings import merged, read_yaml
from dntm.study.config import PRESETS, StudyConfig, StudyFolder, StudyRun

PRINTED = ("table-2", "table-4", "baselines")
"""Tables that are printed; the report has all."""


@dataclass(frozen=True, kw_only=True)
class Reproduce:
    """Build a dataset, train and evaluate all models, and write the paper's tables and figures.

    Interrupted studies resume: repeat the command.
    """

    corpus: str | None = None
    """A named corpus (see dntm data list), a file or folder of texts, or a dataset folder; if
    omitted, sotu."""
    preset: Literal["paper", "small", "quick", "adapter"] | None = None
    """paper: the paper's study. small: smaller versions of the same models; takes hours on two
    cores. quick: only the models A and D; takes minutes. adapter: the models A to D on a pretrained
    --core. If omitted, quick."""
    core: str | None = None
    """The core of all models, such as a pretrained language model: its folder, GGUF file or Hugging
    Face id. If omitted, that of the preset."""
    output_dir: Path | None = None
    """The study folder; if omitted, studies/CORPUS-PRESET."""
    from_: Annotated[str | None, tyro.conf.arg(name="from")] = None
    """A local copy of the corpus (a folder or a Git clone) to use instead of downloading it."""
    text: tuple[str, ...] = ()
    """Text files for pretraining the context encoder. If omitted, the encoder is not pretrained."""
    pretrained: str | None = None
    """A run of dntm pretrain to use instead of --text. The models use the sizes of that run."""
    baselines: bool = False
    """Also train and evaluate baselines beyond the paper: 5-grams, neural caches, a Transformer,
    EntityNLM, and A and D with extensions. They can be added to an existing study."""
    seeds: tuple[int, ...] = ()
    """Random seeds, one run per model and seed; if omitted, those of the preset."""
    config: Path | None = None
    """A YAML file with settings that override the preset, such as study.yaml of another study."""
    jobs: int = min(os.cpu_count() or 1, 4)
    """Number of runs to execute in parallel."""
    threads: int = 0
    """Total CPU threads of all runs; 0: the value of OMP_NUM_THREADS or, if it is not set, the
    number of cores."""
    only: tuple[str, ...] = ()
    """Execute only these runs: models (A, B, D-gru), runs (D-max-2) or patterns ('*-1')."""
    list_: Annotated[bool, tyro.conf.arg(name="list")] = False
    """Print one command per run for a job scheduler and exit. The commands can run in any order, in
    parallel, and on all machines that share the folder."""
    run_: Annotated[str | None, tyro.conf.arg(name="run")] = None
    """Execute only this run, such as D-gru-relu-1, in this process and without a report."""

    def run(self) -> None:
        """Execute the runs, then write and print the report."""
        if self.jobs < 1:
            raise ValueError(f"jobs is {self.jobs}, expected at least 1")
        config = self._settings()
        corpus = Path(config.corpus).name
        folder = StudyFolder(self.output_dir or Path("studies") / f"{corpus}-{config.preset}")
        selected = config.select_runs(self.only)
        folder.save_settings(config)
        if self.list_:
            from dntm.study.run import run_command

            for run in selected:
                print(shlex.join(run_command(folder, run)))
        elif self.run_ is not None:
            self._execute_one(folder, config, self.run_)
        else:
            self._execute(folder, config, selected)
            _write_report(folder)
            _print_next_steps(folder, config)

    def _settings(self) -> StudyConfig:
        """Settings of the existing study or preset, then of the YAML file, then of the options."""
        saved = self.output_dir / "study.yaml" if self.output_dir else None
        exists = saved is not None and saved.exists()
        if saved and exists and self.preset is None and self.config is None:
            config = StudyConfig.from_yaml(saved)
        else:
            config = PRESETS[self.preset or "quick"]
        if self.config:
            config = merged(config, read_yaml(self.config), str(self.config))
        options: dict[str, Any] = {
            "corpus": self.corpus or config.corpus or "sotu",
            "given": self.from_ or config.given,
            "text": self.text or config.text,
            "pretrained": self.pretrained or config.pretrained,
            "seeds": self.seeds or config.seeds,
        }
        if self.core:
            options["model"] = dataclasses.replace(config.model, core=self.core)
        changed = dataclasses.replace(config, **options)
        if changed.preset == "adapter" and not changed.model.is_pretrained:
            raise ValueError("--preset adapter needs a pretrained --core")
        if not (exists and changed == config):
            changed = changed.resolved()
        return changed.with_baselines() if self.baselines else changed

    def _execute_one(self, folder: StudyFolder, config: StudyConfig, name: str) -> None:
        from dntm.study.run import end_with_parent, run_one
        from dntm.training.processes import Interrupted, set_threads

        end_with_parent()
        runs = {run.name: run for run in config.runs}
        if name not in runs:
            raise ValueError(
                f"{folder.path} has no run {name!r}, expected one of {', '.join(runs)}"
            )
        set_threads(self.threads)
        try:
            run_one(folder, config, runs[name], _log)
        except Interrupted:
            sys.exit(f"dntm: interrupted; repeat the command to resume {name}")

    def _execute(self, folder: StudyFolder, config: StudyConfig, selected: list[StudyRun]) -> None:
        unfinished = [run for run in selected if not folder.finished(run)]
        print(f"study: {folder.path} ({config.preset} on {config.corpus})")
        print(f"runs: {len(selected)}, finished: {len(selected) - len(unfinished)}", flush=True)
        if not unfinished:
            return
        from dntm.study.run import ensure_dataset, ensure_pretraining, run_all
        from dntm.training.processes import Interrupted, set_threads

        threads = self.threads or int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
        set_threads(threads)
        try:
            ensure_dataset(folder, config, _log)
            ensure_pretraining(folder, config, _log)
        except Interrupted:
            sys.exit("dntm: interrupted; repeat the command to resume")
        jobs = min(self.jobs, len(unfinished))
        logs = folder.path / "runs" / "NAME" / "log.txt"
        _log(f"executing {len(unfinished)} runs, {jobs} at a time; log files: {logs}")
        run_all(folder, selected, jobs=jobs, threads=max(1, threads // jobs), log=_log)


@dataclass(frozen=True)
class MakeReport:
    """Write the report of a study from the files of its finished runs.

    The same files always give the same report, byte for byte.
    """

    study: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")]
    """The study folder (dntm reproduce)."""
    output_dir: Path | None = None
    """The report folder to create; if omitted, STUDY/report."""

    def run(self) -> None:
        """Write the files and print the main tables."""
        _write_report(StudyFolder(self.study), self.output_dir)


def _write_report(folder: StudyFolder, target: Path | None = None) -> None:
    """Write the report; print its main tables and the claims that could be tested."""
    from dntm.study.report import write_report

    report = write_report(folder, target)
    remove_stale_files(folder.path)
    for table in report.tables:
        if table.key in PRINTED:
            print(f"\n{table.title}")
            print_table(table.lines, table.text_columns)
    print()
    for claim in report.claims:
        if claim.verdict != "not tested":
            print(f"{claim.statement}: {claim.verdict}. {claim.finding}")
    print("\n".join(report.summary[1:]))
    print(f"report: {(target or folder.report) / 'report.html'}")


def _print_next_steps(folder: StudyFolder, config: StudyConfig) -> None:
    """Print commands that use the last finished model of the paper."""
    finished = [run for run in config.runs if run.model.letter and folder.finished(run)]
    if finished:
        run = max(finished, key=lambda run: (run.model.letter, -run.seed))
        model = shlex.quote(str(folder.run(run)))
        print(f"\nto read a text with this model:\n  dntm read --model {model} FILE")
        print(f"  dntm serve --model {model}")


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
