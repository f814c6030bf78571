"""What all tests share: the fixtures' folder, the real corpora where they are, shape checks."""

import os
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

# Some tests compare bit for bit, which holds for one number of threads only
os.environ.setdefault("OMP_NUM_THREADS", "1")
install_import_hook("dntm.model", "beartype.beartype")

FIXTURES = Path(__file__).parent / "fixtures"
DATA = Path(os.environ.get("DNTM_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture
def fixtures() -> Path:
    return FIXTURES


@pytest.fixture
def data() -> Path:
    """Real corpora to check against; set DNTM_DATA to their folder."""
    if not DATA.is_dir():
        pytest.skip("no folder of real corpora: set DNTM_DATA")
    return DATA
