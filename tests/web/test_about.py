from dataclasses import replace

from starlette.testclient import TestClient

from dntm.reader.engine import ModelPair
from dntm.reader.reader import Reader
from dntm.web.app import create_app


def about(models: ModelPair) -> tuple[str, str]:
    app = create_app(Reader(models))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        found = client.get("/api/about").json()
    return found["model"], found["static"]


def test_the_models_are_described(reader: Reader) -> None:
    model, static = about(reader.models)

    words = len(reader.vocabulary.words)
    assert (
        model == f"Model with dynamic input and output embeddings, gru-relu merging, {words} words"
    )
    assert static == "the same weights without memory"


def test_a_baseline_is_described_as_such(reader: Reader) -> None:
    static = reader.models.static

    model, _ = about(replace(reader.models, dynamic=static))

    assert model.startswith("Baseline without dynamic embeddings, ")
