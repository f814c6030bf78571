"""Requests to the server and their answers."""

import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from tests.web.tiny import PATIENCE

Event = dict[str, Any]


def read(client: TestClient, text: str, **fields: object) -> list[Event]:
    """The events of a reading."""
    response = client.post("/api/read", json={"text": text, **fields})
    assert response.status_code == 200, response.text
    return [json.loads(line, parse_constant=_no_json) for line in response.text.splitlines()]


def _no_json(constant: str) -> None:
    """Python accepts NaN, a browser does not."""
    pytest.fail(f"{constant} in an answer")


def kinds(events: Sequence[Event]) -> list[str]:
    return [event["kind"] for event in events]


def spelled(events: Sequence[Event]) -> str:
    """The text of a reading's sentences, without whitespace."""
    tokens = [t for event in events if event["kind"] == "sentence" for t in event["tokens"]]
    return "".join("".join(token["word"].split()) for token in tokens if not token["end"])


def refused(client: TestClient, path: str = "/api/read", **fields: object) -> tuple[int, str]:
    """The status and the message."""
    response = client.post(path, json=fields)
    return response.status_code, response.json()["message"]


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that happens in another thread."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail("timed out")
        time.sleep(0.01)


@contextmanager
def posted(address: str, path: str, body: bytes) -> Iterator[socket.socket]:
    """A connection with a request."""
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), timeout=PATIENCE) as connection:
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {place.netloc}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body)
        yield connection
