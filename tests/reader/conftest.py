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


@pytest.fixture(scope="session", params=[*get_args(Variant), "salience", "pointer"])
def any_reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A reader of each kind of model there is."""
    terms = {term: request.param == term for term in ("salience", "pointer")}
    variant: Variant = "both" if any(terms.values()) else request.param
    folder = tmp_path_factory.mktemp("any") / "model"
    return Reader.from_pretrained(checkpoint(folder, variant, **terms))


@pytest.fixture
def short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are read two sentences at a time."""
    monkeypatch.setattr("dntm.reader.engine.SENTENCES", 2)
