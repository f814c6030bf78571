"""What all tests share: the fixtures' folder, the real corpora where they are, shape checks."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from jaxtyping import config, install_import_hook

# A busy machine must not fail a test: examples have no time limit
settings.register_profile("dntm", deadline=None)
settings.load_profile("dntm")

# Some tests compare bit for bit, which holds for one number of threads only
os.environ.setdefault("OMP_NUM_THREADS", "1")
SOURCE = Path(__file__).parents[1] / "src"
# Shapes are checked wherever they are annotated
install_import_hook(
    [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for path in SOURCE.rglob("*.py")
        if "from jaxtyping import" in path.read_text(encoding="utf-8")
    ],
    "beartype.beartype",
)

DATA = Path(os.environ.get("DNTM_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Disable shape checks, for tests that repeat one computation hundreds of times."""
    config.update("jaxtyping_disable", True)  # noqa: FBT003
    yield
    config.update("jaxtyping_disable", False)  # noqa: FBT003


@pytest.fixture
def fixtures() -> Path:
    return Path(__file__).parent / "fixtures"


@pytest.fixture
def data() -> Path:
    """Real corpora to check against; set DNTM_DATA to their folder."""
    if not DATA.is_dir():
        pytest.skip("no folder of real corpora: set DNTM_DATA")
    return DATA
