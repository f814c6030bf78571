"""`dntm cell`: one run of a study, as `dntm reproduce --list` prints it for schedulers."""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from dntm.experiments.study import StudyConfig, StudyFolder, cells
from dntm.study.jobs import end_with_the_study


@dataclass(frozen=True)
class Command:
    """Train and evaluate one model of a study, or go on with it.

    Running it twice, or at once on several machines, does no harm: whoever comes second waits and
    then finds it finished.
    """

    study: tyro.conf.Positional[Path]
    """The study folder (dntm reproduce --list)."""
    name: tyro.conf.Positional[str]
    """The model's name and the seed, such as D-gru-relu-1."""

    def run(self) -> None:
        """Do what the cell still needs."""
        end_with_the_study()
        folder = StudyFolder(self.study)
        config = StudyConfig.from_yaml(folder.settings)
        found = {cell.name: cell for cell in cells(config)}
        if self.name not in found:
            raise ValueError(f"{self.study} has no cell {self.name!r}: {', '.join(found)}")
        from dntm.study.cell import run_cell
        from dntm.training.signals import Interrupted

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


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
