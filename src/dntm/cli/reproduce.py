"""`dntm reproduce`: a whole study, from a corpus to the report."""

import dataclasses
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tqdm import tqdm

from dntm.cli.forecast import Estimates, forecast, try_models, try_pretraining
from dntm.cli.settings import read_yaml
from dntm.experiments.presets import PRESETS
from dntm.experiments.study import Cell, StudyConfig, StudyFolder, chosen, up_to_date
from dntm.study.jobs import cell_command, run_jobs, share_done
from dntm.study.plan import agree, resolved
from dntm.study.stages import ensure_dataset, ensure_pretraining
from dntm.study.trial import letters_of
from dntm.training.config import merged


@dataclass(frozen=True, kw_only=True)
class Command:
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
    seeds: tuple[int, ...] = ()
    """The seeds; the preset's where not given."""
    config: Path | None = None
    """A YAML file of settings that override the preset's, such as another study's study.yaml."""
    jobs: int = min(os.cpu_count() or 1, 4)
    """Runs side by side; the machine's threads are shared out among them."""
    estimate: bool = True
    """Try a few batches of each kind of model first, to tell how long the study will take."""
    only: tuple[str, ...] = ()
    """Run only these: models (A, B, D-gru), runs (D-max-2), or patterns ('*-1': the first seed)."""
    list_: Annotated[bool, tyro.conf.arg(name="list")] = False
    """Run nothing, print one command a run, for a scheduler: they may run in any order, at once
    and on several machines that share the folder. Then dntm report."""

    def run(self) -> None:
        """Plan, estimate, run, report."""
        if self.jobs < 1:
            raise ValueError(f"jobs is {self.jobs}, expected at least 1")
        config = self._settings()
        name = Path(config.corpus).name
        folder = StudyFolder(self.output_dir or Path("studies") / f"{name}-{config.preset}")
        selected = chosen(config, self.only)
        agree(folder, config)
        if self.list_:
            for cell in selected:
                print(shlex.join(cell_command(folder, cell)))
            return
        self._run_cells(folder, config, selected)
        from dntm.cli.report import make_report

        make_report(folder)

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
        return resolved(dataclasses.replace(config, **changes))

    def _run_cells(self, folder: StudyFolder, config: StudyConfig, selected: list[Cell]) -> None:
        left = [cell for cell in selected if not folder.finished(cell)]
        seeds = ", ".join(map(str, config.seeds))
        print(f"study: {folder.path} ({config.preset} on {config.corpus})")
        print(f"models: {', '.join(config.models)}; seeds: {seeds}")
        print(f"runs: {len(selected)} chosen, {len(selected) - len(left)} of them finished")
        if not left:
            return
        dataset = ensure_dataset(folder, config, _say)
        jobs = min(self.jobs, len(left))
        threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
        each = max(1, threads // jobs)
        estimates = dict.fromkeys(letters_of(left), 1.0)
        if self.estimate:
            _say("trying a few batches of each kind of model ...")
            estimates = try_models(folder, config, dataset, left, threads=each)
            first = try_pretraining(folder, config, threads)
            print(forecast(folder, config, left, estimates, jobs=jobs, first=first), flush=True)
        ensure_pretraining(folder, config, _say)
        _show(folder, config, left, estimates, jobs=jobs, threads=each)


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
    weights = {cell.name: estimates[cell.model.letter] for cell in left}
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
