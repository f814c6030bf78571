"""A study that takes seconds: a few stories, two models, twelve units, with pretraining."""

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ACTS = {"smith": "forged iron", "baker": "kneaded dough", "bard": "sang songs"}
SETTINGS = """
models: [A, D-gru-relu]
seeds: [1]
reading: {fractions: [0.6, 0.1, 0.3]}
build: {max_entities: 4, vocabulary_size: 100}
model: {embedding_dim: 12, hidden_dim: 12, encoder_dim: 12, context_dim: 12}
training: {epochs: 1, batch: 8, learning_rate: 0.02}
pretraining: {iterations: 100, batch: 16}
store: {min_count: 1, held_out: 0.05}
"""


def story(rng: random.Random, first: Sequence[str] = ()) -> dict[str, object]:
    """Two people, each doing the same thing all the time: only memory tells who does what."""
    people = dict(zip(("Ann", "Bo"), rng.sample(sorted(ACTS), 2), strict=True))
    order = [*first, *(rng.choice(sorted(people)) for _ in range(8 - len(first)))]
    sentences = [[who, *ACTS[people[who]].split(), "."] for who in order]
    clusters = [[[4 * s, 4 * s] for s, name in enumerate(order) if name == who] for who in people]
    return {"sentences": sentences, "clusters": clusters}


def write_corpus(folder: Path, stories: int = 60, lines: int = 2000) -> Path:
    """Write stories in which both people appear, and the settings of the study."""
    rng = random.Random(5)
    found = (story(rng, ("Ann", "Bo")) for _ in range(stories))
    documents = [json.dumps({"doc_key": f"d{n}", **own}) for n, own in enumerate(found)]
    (folder / "stories.jsonl").write_text("\n".join(documents) + "\n")
    (folder / "settings.yaml").write_text(SETTINGS)
    acts = [f"The {who} {act} .\n" for who, act in ACTS.items()]
    (folder / "text.txt").write_text("".join(rng.choice(acts) for _ in range(lines)))
    return folder / "stories.jsonl"


def reproduce(corpus: Path, study: Path, *options: str) -> list[str]:
    """The command that runs the study."""
    settings = str(corpus.parent / "settings.yaml")
    words = ("--corpus", corpus, "--preset", "quick", "--config", settings)
    where = ("--text", corpus.with_name("text.txt"), "--output-dir", study)
    command = (sys.executable, "-m", "dntm", "reproduce", *words, *where, *options)
    return [str(word) for word in command]


def kill_all(study: subprocess.Popen[bytes]) -> None:
    """Send SIGKILL to the study and all of its processes."""
    for pid in [*_children(study.pid), study.pid]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    study.wait()


def _children(pid: int) -> list[int]:
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [process for child in found for process in [*_children(int(child)), int(child)]]


def results(study: Path) -> dict[str, str]:
    """All files of the report, without times and machines."""
    files = {
        str(path.relative_to(study)): path.read_text(encoding="utf-8")
        for path in sorted((study / "report").rglob("*"))
        if path.is_file() and path.stem != "runs"
    }
    times = re.compile(r"they took .*?\. |Pretraining took .*?\. ")
    return {name: times.sub("", text) for name, text in files.items()}
