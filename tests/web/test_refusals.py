import json
from importlib.resources import files

import pytest
from starlette.testclient import TestClient

from dntm.reader.reader import Reader
from dntm.reader.text import PreparedText
from dntm.web.app import create_app
from dntm.web.server import HEADERS, Limits
from tests.web.asking import kinds, read, refused
from tests.web.tiny import TEXT, PausingReader

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("text", ["", "  \n ", None, 3, "\ud800 left."])
def test_an_empty_text_and_other_types_are_refused(client: TestClient, text: object) -> None:
    response = client.post("/api/read", content=json.dumps({"text": text}), headers=JSON)

    assert response.status_code == 422
    assert "text" in response.json()["message"]


def test_a_long_text_is_refused_with_its_length_and_the_limit(client: TestClient) -> None:
    status, message = refused(client, text="so " * 7_000)

    assert status == 413
    assert "21,000" in message
    assert "20,000" in message


def test_a_large_request_is_refused_before_it_is_read(client: TestClient) -> None:
    status, message = refused(client, text="so " * 1_000_000)

    assert status == 413
    assert "bytes" in message


@pytest.mark.parametrize(
    ("path", "fields", "name"),
    [
        ("/api/read", {"entities": "all"}, "entities"),
        ("/api/read", {"entities": ["names"]}, "entities"),
        ("/api/read", {"reading": 5}, "reading"),
        ("/api/read", {"have": -1}, "have"),
        ("/api/predict", {"sentence": 9, "position": 0}, "sentence"),
        ("/api/predict", {"sentence": True, "position": 0}, "sentence"),
        ("/api/predict", {"sentence": 0, "position": 99}, "position"),
        ("/api/predict", {"sentence": 0}, "position"),
    ],
)
def test_an_invalid_field_is_named(
    client: TestClient, path: str, fields: dict[str, object], name: str
) -> None:
    status, message = refused(client, path, text=TEXT, **fields)

    assert status == 422
    assert message.startswith(name)


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b"[" * 100_000])
def test_anything_but_a_json_object_is_refused(client: TestClient, content: bytes) -> None:
    response = client.post("/api/read", content=content, headers=JSON)

    assert response.status_code == 422


def test_other_content_types_are_refused(client: TestClient) -> None:
    response = client.post(
        "/api/read", content=json.dumps({"text": TEXT}), headers={"Content-Type": "text/plain"}
    )

    assert response.status_code == 415


@pytest.mark.parametrize("name", ["..%2Fapp.py", "%2e%2e/app.py", "..\\app.py", "/etc/passwd"])
def test_no_path_reaches_the_disk(client: TestClient, name: str) -> None:
    assert files("dntm.web").joinpath("app.py").is_file()

    response = client.get(f"/static/{name}")

    assert response.status_code == 404
    assert "import" not in response.text


class Unable(Reader):
    """Cannot read any text."""

    problem: Exception

    def prepare(self, *_: object, **__: object) -> PreparedText:
        raise self.problem


@pytest.mark.parametrize("path", ["/api/read", "/api/predict"])
def test_errors_of_the_reader_are_reported(reader: Reader, path: str) -> None:
    unable = Unable(reader.models)
    unable.problem = ValueError("no such words")
    with TestClient(create_app(unable), base_url="http://127.0.0.1") as client:
        answer = refused(client, path, text=TEXT, sentence=0, position=0, have=1)

        assert answer == (422, "no such words")


def test_an_internal_error_has_the_security_headers(reader: Reader) -> None:
    unable = Unable(reader.models)
    unable.problem = RuntimeError("broken")
    app = create_app(unable)
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        response = client.post("/api/read", json={"text": TEXT})

        assert response.status_code == 500
        assert {name: response.headers.get(name) for name in HEADERS} == HEADERS


def test_a_reading_that_takes_too_long_ends_with_a_message(pausing: PausingReader) -> None:
    pausing.gate.clear()
    app = create_app(pausing, Limits(seconds=3))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        events = read(client, TEXT)
        pausing.gate.set()

        assert kinds(events) == ["start", "sentence", "error"]
        assert events[-1]["message"] == "reading took longer than 3 s and was stopped"
