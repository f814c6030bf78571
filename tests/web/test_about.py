from dataclasses import replace

from starlette.testclient import TestClient

from dntm.reader.reader import Reader
from dntm.web.app import create_app


def test_the_models_are_described(client: TestClient, reader: Reader) -> None:
    about = client.get("/api/about").json()
    baseline = Reader(replace(reader.models, dynamic=reader.models.static))
    with TestClient(create_app(baseline), base_url="http://127.0.0.1") as other:
        static = other.get("/api/about").json()

    dynamic = "Model with dynamic input and output embeddings, gru-relu merging"
    assert about["model"] == f"{dynamic}, {len(reader.vocabulary.words)} words"
    assert about["static"] == "the same weights without memory"
    assert static["model"].startswith("Baseline without dynamic embeddings, ")
