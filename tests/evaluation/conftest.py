import pytest


@pytest.fixture(autouse=True)
def few_frequent_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dntm.model.extensions.naming.FREQUENT", 2)
