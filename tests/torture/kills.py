"""kill -9 at random moments: a command that is repeated ends with the bits of one never killed.

Commands run in forks of a process that has PyTorch loaded but has computed nothing yet, so that a
kill costs no import. (Runs of a study are processes of their own, which the study starts.)
"""

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

import dntm.study.run  # noqa: F401 (loaded once, for all forks)
from dntm.cli import data, study, train  # noqa: F401
from dntm.cli.main import main
from dntm.corpus.dataset import Dataset
from dntm.training import run_folder
from tests.torture.trying import Tally
from tests.training.small_pretraining import outcome

SIZES = [f"--model.{name}-dim=8" for name in ("embedding", "hidden", "encoder", "context")]
ENOUGH = 600.0
"""Seconds after which a command that nobody kills has hung."""


def start(command: list[str], log: Path) -> int:
    """Run a command in a fork; returns its process."""
    if child := os.fork():
        return child
    code = 1
    try:
        os.setsid()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        vars(run_folder)["CHECKPOINT_SECONDS"] = 0.0
        main(command)
        code = 0
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 99
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait(child: int, log: Path, seconds: float = ENOUGH) -> tuple[int | None, str]:
    """The code of a process, None where it does not end in time, and what it said."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), log.read_text(errors="replace")
        time.sleep(0.005)
    return None, ""


def kill_train(folder: Path, kills: int, seed: int) -> Tally:
    """A run that is killed again and again ends with the bits of one that was not."""
    where = ["--dataset", str(folder / "dataset"), "--output-dir", str(folder / "run"), "--resume"]
    recipe = ["--training.epochs=2", "--training.batch=4", "--training.truncation=3"]
    return _kill(["train", *where, *SIZES, *recipe], folder / "run", outcome, kills, seed)


def kill_pretrain(folder: Path, kills: int, seed: int) -> Tally:
    """The same for pretraining."""
    target = folder / "pretraining"
    where = ["--text", str(folder / "text.txt"), "--output-dir", str(target), "--resume"]
    sizes = ["--model.embedding-dim=8", "--model.encoder-dim=8", "--store.min-count=1"]
    recipe = ["--training.iterations=30", "--training.batch=16", "--training.validations=3"]
    command = ["pretrain", *where, *sizes, "--store.held-out=0.1", *recipe]
    return _kill(command, target, outcome, kills, seed)


def kill_build(folder: Path, kills: int, seed: int) -> Tally:
    """A dataset is there as a whole or not at all."""
    target = folder / "dataset"
    where = ["--output-dir", str(target), "--max-entities=2", "--keep-single", "--overwrite"]
    command = ["data", "build", str(folder / "stories.jsonl"), *where]
    return _kill(command, target, lambda made: _contents(made.iterdir()), kills, seed)


def kill_reproduce(folder: Path, kills: int, seed: int) -> Tally:
    """A study ends with the same tables, and its runs end with it."""
    settings = folder / "study-settings.yaml"
    sizes = ", ".join(f"{n}_dim: 8" for n in ("embedding", "hidden", "encoder", "context"))
    settings.write_text(f"model: {{{sizes}}}\ntraining: {{epochs: 2}}\nmodels: [A]\n")
    command = ["reproduce", "--corpus", str(folder / "dataset"), "--config", str(settings),
               "--output-dir", str(folder / "study"), "--jobs=1", "--threads=1"]  # fmt: skip
    return _kill(command, folder / "study", _study_bits, kills, seed)


def _kill(
    command: list[str], target: Path, bits: Callable[[Path], object], kills: int, seed: int
) -> Tally:
    folder, name = target.parent, " ".join(command[: 2 if command[0] == "data" else 1])
    rng, tally, log = random.Random(seed), Tally(f"kill -9: {name}"), folder / "log.txt"
    shutil.rmtree(target, ignore_errors=True)
    began = time.monotonic()
    code, said = wait(start(command, log), log)
    tally.expect(f"{name}, not killed: code {code}: {said[-300:]}", holds=code == 0)
    if code != 0:
        return tally
    took, expected = time.monotonic() - began, bits(target)
    shutil.rmtree(target)
    while tally.tried < kills:
        child = start(command, log)
        time.sleep(rng.random() * took * rng.choice((0.2, 1.0, 1.0)))
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code, said = os.waitstatus_to_exitcode(status), log.read_text(errors="replace")
            tally.expect(f"{name} after kills: code {code}: {said[-300:]}", holds=code == 0)
            tally.expect(f"{name} after kills: other bits", holds=bits(target) == expected)
            shutil.rmtree(target, ignore_errors=True)
            continue
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        tally.tried += 1
        tally.expect(f"kill {tally.tried}: half a target", holds=_is_whole(target))
    code, said = wait(start(command, log), log)
    tally.expect(f"{name}, at last: code {code}: {said[-300:]}", holds=code == 0)
    tally.expect(f"{name}: Traceback", holds="Traceback" not in said)
    tally.expect(f"{name}, at last: other bits", holds=bits(target) == expected)
    left = [p for p in folder.rglob(".*") if p.name != ".lock" and ".locks" not in p.parts]
    tally.expect(f"{name} leaves {sorted(p.name for p in left)}", holds=not left)
    return tally


def _is_whole(target: Path) -> bool:
    """Nothing that has its final name is half there."""
    for path in target.rglob("*.json") if target.is_dir() else ():
        if not any(part.startswith(".") for part in path.relative_to(target).parts):
            json.loads(path.read_text())
    if (target / "dataset.json").exists():
        Dataset.open(target).check_content()
    return True


def _contents(files: Iterable[Path]) -> list[tuple[str, bytes]]:
    return sorted((path.name, path.read_bytes()) for path in files)


def _study_bits(study_: Path) -> object:
    runs = sorted(path for path in (study_ / "runs").iterdir() if path.is_dir())
    return [*map(outcome, runs)], _contents((study_ / "report" / "tables").glob("*.csv"))
