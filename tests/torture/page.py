"""Odd requests, many readers at once, and clients that say or take nothing."""

import http.client
import json
import random
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.testclient import TestClient

from dntm.reader.reader import Reader
from dntm.web.app import create_app
from dntm.web.requests import Limits
from dntm.web.server import HEADERS, Connection
from tests.torture.trying import Tally, damaged, edited
from tests.web.tiny import TEXT, save_tiny_model, served

PATHS = (
    *("/", "/api/read", "/api/maps", "/api/predict", "/api/about", "/static/app.js", "/static/x"),
    *("/static/../server.py", "/static/%2e%2e/app.py", "/api/%00", "//", "/api/read/", "/?x=1"),
)
METHODS = ("POST", "POST", "POST", "POST", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "X")
SLOW = 5.0


def reader(folder: Path) -> Reader:
    """A tiny model that reads."""
    return Reader.from_pretrained(save_tiny_model(folder / "page-model"))


def odd_requests(model: Reader, count: int, seed: int) -> Tally:
    """No request, however odd, makes an error of the server's own; every answer has its headers."""
    rng, tally = random.Random(seed), Tally("odd requests to the page")
    body = {
        "text": TEXT,
        "entities": "both",
        "reading": "",
        "have": 0,
        "sentence": 1,
        "position": 0,
    }
    with TestClient(create_app(model), base_url="http://127.0.0.1") as client:
        for number in range(count):
            content = json.dumps(edited(body, rng) if rng.random() < 0.6 else body).encode()
            if rng.random() < 0.3:
                content = damaged(content, rng)
            headers = {"content-type": "application/json"}
            if rng.random() < 0.2:
                name = rng.choice(("content-type", "host", "origin", "sec-fetch-site", "cookie"))
                headers[name] = rng.choice(
                    ("", "x", "http://evil.example", "evil.example", "a" * 9000)
                )
            path, method = rng.choice(PATHS), rng.choice(METHODS)
            began = time.process_time()
            answer = tally.attempt(
                f"request {number} of seed {seed}: {method} {path}",
                lambda: client.request(method, path, content=content, headers=headers),  # noqa: B023
            )
            tally.slowest = max(tally.slowest, time.process_time() - began)
            if answer is None:
                continue
            label = f"request {number} of seed {seed}: {method} {path} gives {answer.status_code}"
            tally.refused += answer.status_code >= 400
            tally.expect(label, holds=answer.status_code < 500)
            secure = all(answer.headers.get(name) == value for name, value in HEADERS.items())
            tally.expect(f"{label} without its headers", holds=secure)
    return tally


def many_readers(model: Reader, readers: int, seconds: float) -> Tally:
    """Every reading is that of a reader alone; who is told to come back does."""
    tally, lock = Tally(f"{readers} readers for {seconds:g} s"), threading.Lock()
    texts = [TEXT, f"{TEXT} {TEXT}", "The zorrel slept. A zorrel sees Marta.", TEXT[:60]]
    with served(create_app(model)) as address:
        expected = [_surprisals(_ask(address, text)[1]) for text in texts]
        stop = time.monotonic() + seconds

        def work(number: int) -> None:
            rng = random.Random(number)
            while time.monotonic() < stop:
                which = rng.randrange(len(texts))
                try:
                    status, events = _ask(address, texts[which])
                except (OSError, ValueError, http.client.HTTPException) as error:
                    with lock:
                        tally.problems.append(f"reader {number}: {error!r}")
                    return
                with lock:
                    tally.tried += 1
                    if status == 503:
                        tally.refused += 1
                    else:
                        read = _surprisals(events)
                        same = read == expected[which][: len(read)]
                        tally.expect(f"reader {number}: {status}, other numbers", holds=same)
                        # Cut off after a minute's work, it says so
                        whole = len(read) == len(expected[which])
                        told = any("message" in event for event in events)
                        tally.expect(f"reader {number}: cut off, not told", holds=whole or told)
                if status == 503:
                    time.sleep(0.2)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(readers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return tally


def rude_clients(model: Reader, stalled: int, silent: int) -> Tally:
    """Clients that take nothing and clients that say nothing: others are served all the same."""
    tally = Tally(f"{stalled} stalled, {silent} silent clients")
    body = json.dumps({"text": "The zorrel sat by the gate. " * 60}).encode()
    with served(create_app(model), buffer=4096) as address, ExitStack() as stack:
        place = urlsplit(address)
        head = (
            f"POST /api/read HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n"
        )
        for number in range(stalled + silent):
            client = socket.socket()
            stack.enter_context(client)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((place.hostname, place.port))
            if number < stalled:
                client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            tally.tried += 1
        # Worked on for so long at most, then not taken for so long
        longest = Limits().seconds + Connection.patience + SLOW
        began = time.monotonic()
        while (status := _status(address)) == 503 and time.monotonic() - began < 2 * longest:
            time.sleep(0.1)
        waited = time.monotonic() - began
        tally.expect(f"after {waited:.0f} s a reader is told {status}", holds=status == 200)
        tally.expect(f"a reader waited {waited:.0f} s", holds=waited < longest)
        tally.slowest = waited
    return tally


def _status(address: str) -> int:
    try:
        return _ask(address, TEXT)[0]
    except (OSError, http.client.HTTPException):
        return 0


def _ask(address: str, text: str) -> tuple[int, list[Any]]:
    place = urlsplit(address)
    assert place.hostname is not None
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=90)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/api/read", json.dumps({"text": text}), headers)
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    return answer.status, [json.loads(line) for line in content.splitlines()]


def _surprisals(events: list[Any]) -> list[Any]:
    """The sentences of a reading, without what belongs to this one alone."""
    return [event for event in events if event.get("kind") == "sentence"]
