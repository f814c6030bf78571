from pathlib import Path

import pytest

from dntm.reader.reader import Reader
from tests.web.tiny import save_tiny_model


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="session")
def reader(checkpoint: Path) -> Reader:
    return Reader.from_pretrained(checkpoint)
