from pathlib import Path

import pytest

from dntm.reader.reader import Reader
from tests.reader.small import checkpoint


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("trained") / "d")


@pytest.fixture(scope="session")
def reader(trained: Path) -> Reader:
    return Reader.from_pretrained(trained)
