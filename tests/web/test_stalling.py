"""Clients that say nothing, take nothing or ask for odd things, and a server that ends."""

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from starlette.testclient import TestClient

from dntm.reader.reader import Reader
from dntm.web.app import create_app
from dntm.web.requests import Limits
from dntm.web.server import Connection
from tests.web.asking import posted, refused, until
from tests.web.tiny import PATIENCE, TEXT, PausingReader, served

SECURE = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": (
        "accelerometer=(), autoplay=(), camera=(), display-capture=(), encrypted-media=(), "
        "fullscreen=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), "
        "payment=(), picture-in-picture=(), publickey-credentials-get=(), screen-wake-lock=(), "
        "usb=(), xr-spatial-tracking=()"
    ),
    "x-permitted-cross-domain-policies": "none",
    "cache-control": "no-store",
}
"""Every security header, by value."""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections give up soon."""
    monkeypatch.setattr(Connection, "patience", 0.5)


def silent(address: str) -> socket.socket:
    place = urlsplit(address)
    return socket.create_connection((place.hostname, place.port), timeout=PATIENCE)


def everything(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


def is_dropped(connection: socket.socket) -> bool:
    try:
        return connection.recv(100) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("path", ["/", "/api/about", "/static/app.js", "/missing"])
def test_every_security_header_has_its_value(client: TestClient, path: str) -> None:
    response = client.get(path)

    assert {name: response.headers.get(name) for name in SECURE} == SECURE


def test_an_answer_to_what_is_no_http_has_the_headers_too(reader: Reader) -> None:
    with served(create_app(reader)) as address, silent(address) as connection:
        connection.sendall(b"\x16\x03\x01 nonsense\r\n\r\n")

        answer = everything(connection).decode().lower()

    assert answer.startswith("http/1.1 400")
    for name, value in SECURE.items():
        assert f"{name}: {value}".lower() in answer


def test_clients_that_do_not_read_their_answers_lose_their_places(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "patience", 3.0)  # both places are taken before one is lost
    app = create_app(reader, Limits(readings=2))
    body = json.dumps({"text": "The zorrel sat. " * 60}).encode()
    with served(app, buffer=4096) as address, ExitStack() as stack:
        for _ in range(2):
            connection = socket.socket()
            stack.enter_context(connection)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            place = urlsplit(address)
            connection.connect((place.hostname, place.port))
            head = f"POST /api/read HTTP/1.1\r\nHost: {place.netloc}\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
        until(lambda: app.state.readings.workers.active == 2)

        until(lambda: app.state.readings.workers.active == 0)

        answer = httpx2.post(f"{address}/api/read", json={"text": TEXT}, timeout=PATIENCE)
        assert answer.status_code == 200


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: 127"])
def test_a_connection_that_does_not_finish_its_request_is_dropped(
    reader: Reader, said: bytes
) -> None:
    with served(create_app(reader)) as address, silent(address) as connection:
        connection.sendall(said)

        assert is_dropped(connection)


@pytest.mark.usefixtures("impatient")
def test_nor_does_a_second_request_over_the_same_connection_take_for_ever(reader: Reader) -> None:
    with served(create_app(reader)) as address, silent(address) as connection:
        host = urlsplit(address).netloc
        connection.sendall(f"GET /api/about HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert connection.recv(10) == b"HTTP/1.1 2"
        connection.sendall(b"GET / HTTP/1.1\r\n")

        rest = b""
        while not rest.endswith(b"]}"):
            rest += connection.recv(65536)
        assert is_dropped(connection)


def test_silent_connections_keep_nobody_out(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "most", 8)
    with served(create_app(reader)) as address, ExitStack() as stack:
        waiting = [stack.enter_context(silent(address)) for _ in range(20)]

        response = httpx2.get(address, timeout=PATIENCE)

        assert response.status_code == 200
        assert is_dropped(waiting[0])


def test_a_reading_under_way_makes_no_room(
    pausing: PausingReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "most", 3)
    pausing.gate.clear()
    body = json.dumps({"text": TEXT}).encode()
    app = create_app(pausing)
    with (
        served(app) as address,
        posted(address, "/api/read", body) as reading,
        ExitStack() as stack,
    ):
        until(lambda: pausing.steps == 2)
        for _ in range(6):
            stack.enter_context(silent(address))
        httpx2.get(address, timeout=PATIENCE)
        pausing.gate.set()

        answer = b""
        while b'"kind":"end"' not in answer:
            more = reading.recv(65536)
            assert more
            answer += more


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What the server logs."""
    logger = logging.getLogger("uvicorn.error")
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)


def test_a_websocket_is_not_offered_and_nothing_is_logged(
    reader: Reader, log: pytest.LogCaptureFixture
) -> None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    with served(create_app(reader)) as address:
        response = httpx2.get(f"{address}/api/read", headers=upgrade, timeout=PATIENCE)

    assert response.status_code == 405
    assert log.text == ""


@pytest.mark.parametrize("mark", ["\u0301", "\u0301\u0316"])
def test_a_letter_with_thousands_of_marks_is_refused_before_it_is_put_in_order(
    client: TestClient, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "dntm.web.requests.raw_sentences", lambda _: pytest.fail("it takes seconds")
    )

    status, message = refused(client, text="A dog e" + mark * 9_000 + " left.")

    assert status == 422
    assert "30 accents" in message


def test_words_with_marks_are_read(client: TestClient) -> None:
    response = client.post("/api/read", json={"text": "Zoe\u0308 ate. Tie\u0302\u0301ng left."})

    assert response.status_code == 200


def test_a_server_that_is_terminated_ends_open_readings_without_a_traceback(
    checkpoint: Path, tmp_path: Path
) -> None:
    waiting = tmp_path / "waiting.py"
    waiting.write_text(
        "import sys\n"
        "from dntm.web.app import create_app\n"
        "from dntm.reader.reader import Reader\n"
        "from dntm.web.server import address, bind, serve\n"
        "from tests.web.tiny import PausingReader\n"
        "reader = PausingReader(Reader.from_pretrained(sys.argv[1]).models)\n"
        "reader.gate.clear()\n"
        "taken = bind('127.0.0.1', 0)\n"
        "print(address(taken), flush=True)\n"
        "import tests.web.tiny as tiny\n"
        "tiny.PATIENCE = 3.0\n"
        "serve(create_app(reader), taken, browser=False)\n",
        encoding="utf-8",
    )
    process = subprocess.Popen(
        [sys.executable, str(waiting), str(checkpoint)],
        cwd=Path(__file__).parents[2],
        env=_with_path(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    found = re.search(r"http://[\d.:]+", process.stdout.readline())
    assert found
    body = json.dumps({"text": TEXT}).encode()
    with ExitStack() as stack:
        readings = [stack.enter_context(posted(found[0], "/api/read", body)) for _ in range(4)]
        for reading in readings[:2]:
            assert reading.recv(10) == b"HTTP/1.1 2"
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        answers = [everything(reading) for reading in readings[:2]]
        _, errors = process.communicate(timeout=PATIENCE)

    assert all(b"the server is being stopped" in answer for answer in answers)
    assert errors == ""
    assert time.monotonic() - began < 20


def _with_path() -> dict[str, str]:
    here = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join((here, *filter(None, sys.path)))}
