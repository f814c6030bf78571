from pathlib import Path
from typing import get_args

import pytest

from dntm.model.config import Variant
from dntm.reader.reader import Reader
from tests.reader.small import checkpoint


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("trained") / "d")


@pytest.fixture(scope="session")
def reader(trained: Path) -> Reader:
    return Reader.from_pretrained(trained)


@pytest.fixture(scope="session", params=[*get_args(Variant), "extended", "transformer"])
def any_reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A reader of each kind of model there is."""
    folder = tmp_path_factory.mktemp("any") / "model"
    if request.param == "extended":
        checkpoint(folder, extensions=("entity-residual", "salience", "unseen-pooling", "pointer"))
    elif request.param == "transformer":
        checkpoint(folder, core="transformer")
    else:
        checkpoint(folder, request.param)
    return Reader.from_pretrained(folder)


@pytest.fixture
def short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are read two sentences at a time."""
    monkeypatch.setattr("dntm.reader.engine.SENTENCES", 2)
