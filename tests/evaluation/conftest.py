import pytest


@pytest.fixture(autouse=True)
def few_frequent_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("word_baselines", "meaning"):
        monkeypatch.setattr(f"dntm.evaluation.{module}.FREQUENT", 2)
