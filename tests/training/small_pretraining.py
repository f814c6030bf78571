"""A pretraining of a few seconds, and interruptions of any training."""

import json
import random
import subprocess
import sys
from collections.abc import Callable, Generator
from itertools import islice
from pathlib import Path

from dntm.corpus.token_store import StoreConfig
from dntm.training.config import EncoderConfig, PretrainConfig, PretrainRecipe
from dntm.training.run_folder import RunFolder
from dntm.training.state import Progress

ON_TWO = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
NOUNS = {"dog": ("barked", "growled"), "cat": ("purred", "mewed"), "bee": ("hummed", "stung")}


def config(text: Path, run: Path, iterations: int = 40) -> PretrainConfig:
    return PretrainConfig(
        text=(text,),
        output_dir=run,
        store=StoreConfig(min_count=1, held_out=0.1),
        model=EncoderConfig(embedding_dim=12, encoder_dim=12),
        training=PretrainRecipe(
            batch=16,
            iterations=iterations,
            learning_rate=0.02,
            validations=4,
            average=0.9,
            schedule="cosine",
        ),
    )


def outcome(run: Path) -> dict[str, bytes]:
    """What a resumed run must have in common with one that was never interrupted."""
    latest = RunFolder(run).latest()
    assert latest is not None
    names = ("metrics.jsonl", "best/model.safetensors", "best/vocab.txt", "all_results.json")
    state = (latest / "state.safetensors").read_bytes()
    return {name: (run / name).read_bytes() for name in names} | {latest.name: state}


def interrupt_often(start: Callable[[bool], Generator[Progress, None, None]], most: int) -> int:
    """Stop a run after at most `most` steps and resume it, until it ends; count the resumes."""
    rng, resumes = random.Random(3), 0
    while True:
        progress = start(resumes > 0)
        stop_after = rng.randint(1, most)
        if len(list(islice(progress, stop_after))) < stop_after:
            return resumes
        progress.close()
        resumes += 1


def run_on_two(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a script or a module on two processes."""
    return subprocess.run([*ON_TWO, *command], capture_output=True, text=True, check=False)


def losses(run: Path) -> list[float]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["loss"] for line in lines]
