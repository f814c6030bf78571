"""Studies: `dntm reproduce` a whole one, `dntm cell` one run of it, `dntm report` its report."""

import dataclasses
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tqdm import tqdm

from dntm.cli.runs import refuse_unused
from dntm.files import locked, remove_stale_files
from dntm.settings import merged, read_yaml
from dntm.study.config import (
    PRESETS,
    Cell,
    StudyConfig,
    StudyFolder,
    cells,
    chosen,
    up_to_date,
    with_peers,
)
from dntm.study.plan import (
    PRETRAINING,
    agree,
    end_with_the_study,
    ensure_dataset,
    ensure_pretraining,
    part_command,
    pretrain_config,
    pretraining_is_due,
    resolved_config,
    run_jobs,
    share_done,
)
from dntm.study.trial import Estimates, forecast, try_models, try_pretraining

SHOWN = ("table-2", "table-4", "peers")
"""The tables that the terminal shows; the report has all."""


@dataclass(frozen=True, kw_only=True)
class Reproduce:
    """Make the paper's tables and figures: dataset, runs, evaluation, cloze test, report.

    Stopped at any moment, the same command goes on and loses no finished run.
    """

    corpus: str | None = None
    """A corpus by name (dntm data list), a file or folder as for dntm data build, or a dataset
    folder; sotu where not given."""
    preset: Literal["paper", "small", "quick"] | None = None
    """How large: the paper's study, the same at a size for two to three hours, or a first look in
    minutes (where not given)."""
    output_dir: Path | None = None
    """The study folder; studies/CORPUS-PRESET where not given."""
    from_: Annotated[str | None, tyro.conf.arg(name="from")] = None
    """A local clone, folder or mirror of a corpus known by name, instead of fetching it."""
    text: tuple[str, ...] = ()
    """Text files to pretrain the context encoder on; without any there is no pretraining."""
    pretrained: str | None = None
    """A run of dntm pretrain to use instead of pretraining anew; the models take its sizes."""
    peers: bool = False
    """Also the peers that people would use instead, trained and tuned on the same dataset:
    salience, a pointer, a Transformer, a model after EntityNLM, 5-grams, a neural cache, dynamic
    evaluation. They stand in a table of their own; a study that exists can get them, too."""
    seeds: tuple[int, ...] = ()
    """The seeds; the preset's where not given."""
    config: Path | None = None
    """A YAML file of settings that override the preset's, such as another study's study.yaml."""
    jobs: int = min(os.cpu_count() or 1, 4)
    """Runs side by side; the threads are shared out among them."""
    threads: int = 0
    """Threads of all runs together; 0: as OMP_NUM_THREADS says, or else one for each core."""
    estimate: bool = True
    """Try a few batches of each kind of model first, to tell how long the study will take."""
    only: tuple[str, ...] = ()
    """Run only these: models (A, B, D-gru), runs (D-max-2), or patterns ('*-1': the first seed)."""
    list_: Annotated[bool, tyro.conf.arg(name="list")] = False
    """Run nothing, print one command a run, for a scheduler: they may run in any order, at once
    and on several machines that share the folder. Then dntm report."""

    def run(self) -> None:
        """Plan, estimate, run, report."""
        if self.jobs < 1 or self.threads < 0:
            raise ValueError(
                f"jobs is {self.jobs} and threads {self.threads}, expected at least 1 and 0"
            )
        if self.list_:
            refuse_unused(self, "jobs threads estimate", "with --list, which runs nothing")
        config = self._settings()
        name = Path(config.corpus).name
        folder = StudyFolder(self.output_dir or Path("studies") / f"{name}-{config.preset}")
        selected = chosen(config, self.only)
        agree(folder, config)
        if self.list_:
            for cell in selected:
                print(shlex.join(part_command(folder, cell.name)))
            return
        self._run_cells(folder, config, selected)
        _make_report(folder)
        _say_what_next(folder, config)

    def _settings(self) -> StudyConfig:
        """The preset's settings, then the YAML file's, then those of the command line."""
        saved = self.output_dir / "study.yaml" if self.output_dir else None
        going_on = saved is not None and saved.exists()
        if saved and going_on and self.preset is None and self.config is None:
            config = StudyConfig.from_yaml(saved)
        else:
            config = PRESETS[self.preset or "quick"]
        if self.config:
            config = merged(config, up_to_date(read_yaml(self.config)), str(self.config))
        changes: dict[str, Any] = {
            "corpus": self.corpus or config.corpus or "sotu",
            "given": self.from_ or config.given,
            "text": self.text or config.text,
            "pretrained": self.pretrained or config.pretrained,
            "seeds": self.seeds or config.seeds,
        }
        found = resolved_config(dataclasses.replace(config, **changes))
        return with_peers(found) if self.peers else found

    def _run_cells(self, folder: StudyFolder, config: StudyConfig, selected: list[Cell]) -> None:
        left = [cell for cell in selected if not folder.finished(cell)]
        seeds = ", ".join(map(str, config.seeds))
        print(f"study: {folder.path} ({config.preset} on {config.corpus})")
        print(f"models: {', '.join(config.models)}; seeds: {seeds}")
        print(f"runs: {len(selected)} chosen, {len(selected) - len(left)} of them finished")
        if not left:
            return
        ensure_dataset(folder, config, _say)
        jobs = min(self.jobs, len(left))
        threads = self.threads or int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
        each = max(1, threads // jobs)
        estimates = {cell.model.kind: 1.0 for cell in left}
        if self.estimate:
            _say("trying a few batches of each kind of model ...")
            estimates, lines = try_models(folder, config, left, threads=each)
            print("\n".join(lines))
            first = try_pretraining(folder, config, threads)
            print(forecast(folder, config, left, estimates, jobs=jobs, first=first), flush=True)
        ensure_pretraining(folder, config, _say)
        _show(folder, config, left, estimates, jobs=jobs, threads=each)


@dataclass(frozen=True)
class RunCell:
    """Train and evaluate one model of a study, or go on with it.

    Running it twice, or at once on several machines, does no harm: whoever comes second waits and
    then finds it finished.
    """

    study: tyro.conf.Positional[Path]
    """The study folder (dntm reproduce --list)."""
    name: tyro.conf.Positional[str]
    """The model's name and the seed, such as D-gru-relu-1; or pretraining, which all cells share
    (the first of them sees to it)."""
    threads: int = 0
    """Threads of the matrix products; 0: as OMP_NUM_THREADS says, or else one for each core."""

    def run(self) -> None:
        """Do what the cell still needs."""
        end_with_the_study()
        if self.threads:
            from dntm.training.processes import set_threads

            set_threads(self.threads)
        folder = StudyFolder(self.study)
        config = StudyConfig.from_yaml(folder.settings)
        if self.name == PRETRAINING and config.text:
            _pretrain(folder, config)
            return
        found = {cell.name: cell for cell in cells(config)}
        if self.name not in found:
            raise ValueError(f"{self.study} has no cell {self.name!r}: {', '.join(found)}")
        from dntm.study.cell import run_cell
        from dntm.training.processes import Interrupted

        try:
            for progress in run_cell(folder, config, found[self.name], _say):
                if progress.validation:
                    perplexity = progress.validation["all"]
                    _say(
                        f"{self.name}: batch {progress.batch} of {progress.batches}, "
                        f"dev perplexity {perplexity:.1f}"
                    )
        except Interrupted:
            sys.exit(f"dntm: interrupted; {self.name} goes on when the command is called again")
        _say(f"{self.name}: finished")


@dataclass(frozen=True)
class MakeReport:
    """Make the report of a study, finished or not, from the files of its runs.

    The same files give the same report, byte for byte.
    """

    study: tyro.conf.Positional[Path]
    """The study folder (dntm reproduce)."""
    output_dir: Path | None = None
    """The folder to write to; STUDY/report where not given."""

    def run(self) -> None:
        """Write the files and print the main tables."""
        _make_report(StudyFolder(self.study), self.output_dir)


def _pretrain(folder: StudyFolder, config: StudyConfig) -> None:
    """Pretrain the study's context encoder, or go on with it."""
    from dntm.cli.train import Pretrain

    ensure_dataset(folder, config, _say)
    elsewhere = "the encoder is being pretrained elsewhere"
    with locked(folder.lock(PRETRAINING), lambda: _say(elsewhere)):
        if pretraining_is_due(folder, config):
            Pretrain(**vars(pretrain_config(folder, config)), resume=True).run()


def _make_report(folder: StudyFolder, target: Path | None = None) -> None:
    """Write a report, print its main tables and what became of the claims that were tested."""
    from dntm.study.report import as_text, write_report

    report = write_report(folder, target)
    remove_stale_files(folder.path)
    for table in report.tables:
        if table.key in SHOWN:
            print(f"\n{as_text(table)}")
    tested = [claim for claim in report.claims if claim.verdict != "could not be tested"]
    if tested:
        print()
    for claim in tested:
        print(f"{claim.statement}. {claim.judged} {claim.finding}")
    for note in report.notes:
        print(f"\n{note}")
    print(f"\nreport: {(target or folder.report) / 'report.html'}")


def _say_what_next(folder: StudyFolder, config: StudyConfig) -> None:
    """How to use a model of the study, the most dynamic one that is finished."""
    finished = [c for c in cells(config) if not c.model.peer and folder.finished(c)]
    if not finished:
        return
    run = folder.run(max(finished, key=lambda cell: (cell.model.kind, -cell.seed)))
    model = shlex.quote(str(run))
    print("\ntry next:")
    commands = {
        f"dntm serve --model {model}": "a page on which this model reads your text",
        f"dntm read --model {model} FILE": "the same in the terminal",
        "dntm serve": "with the model that comes with dntm",
    }
    width = max(map(len, commands))
    for command, what in commands.items():
        print(f"  {command:<{width}}  # {what}")


def _show(
    folder: StudyFolder,
    config: StudyConfig,
    left: list[Cell],
    estimates: Estimates,
    *,
    jobs: int,
    threads: int,
) -> None:
    """One bar over all runs, in estimated seconds, and a line for each that ends."""
    weights = {cell.name: estimates[cell.model.kind] for cell in left}
    shares = {cell.name: share_done(folder, config, cell) for cell in left}
    initial = sum(weights[name] * share for name, share in shares.items())
    failed: dict[str, str] = {}
    shape = "{desc}: {percentage:3.0f}% {bar} {elapsed}<{remaining}{postfix}"
    with tqdm(total=sum(weights.values()), initial=initial, bar_format=shape, disable=None) as bar:
        for status in run_jobs(folder, config, left, jobs=jobs, threads=threads):
            ended = [n for n, share in status.done.items() if share == 1 and shares.get(n) != 1]
            for name in ended:
                bar.write(f"finished {name}", file=sys.stderr)
            for name in status.failed.keys() - failed.keys():
                bar.write(f"failed {name}: {status.failed[name]}", file=sys.stderr)
            shares, failed = dict(status.done), dict(status.failed)
            finished = sum(share == 1 for share in shares.values())
            bar.set_description(f"{finished} of {len(left)} runs", refresh=False)
            elsewhere = [f"{name} elsewhere" for name in status.elsewhere]
            bar.set_postfix_str(", ".join([*status.running, *elsewhere]), refresh=False)
            bar.update(sum(weights[n] * share for n, share in shares.items()) - bar.n)
    if failed:
        logs = ", ".join(str(folder.path / "runs" / name / "log.txt") for name in sorted(failed))
        raise ValueError(f"{len(failed)} of {len(left)} runs failed: see {logs}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
