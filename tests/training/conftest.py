"""What tests of pretraining share."""

import random
from pathlib import Path

import pytest

from tests.training.small_pretraining import NOUNS


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Only the order of the words tells who does what to whom."""
    rng = random.Random(2)
    path = tmp_path_factory.mktemp("text") / "text.txt"
    lines = []
    for _ in range(1500):
        who, whom = rng.sample(sorted(NOUNS), 2)
        lines.append(f"the {who} {rng.choice(NOUNS[who])} and the {whom} heard the {who} .")
    path.write_text("\n".join(lines) + "\n")
    return path
