"""Odd requests, and many readers at once."""

import http.client
import json
import random
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.testclient import TestClient

from dntm.reader.reader import Reader
from dntm.web.app import create_app
from dntm.web.server import HEADERS
from tests.torture.trying import Tally, damaged, edited
from tests.web.tiny import TEXT, save_tiny_model, served

PATHS = (
    *("/", "/api/read", "/api/predict", "/api/about", "/static/app.js", "/static/x"),
    *("/static/../server.py", "/static/%2e%2e/app.py", "/api/%00", "//", "/api/read/", "/?x=1"),
)
METHODS = ("POST", "POST", "POST", "POST", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "X")


def reader(folder: Path) -> Reader:
    """A reader with a tiny model."""
    return Reader.from_pretrained(save_tiny_model(folder / "page-model"))


def odd_requests(model: Reader, count: int, seed: int) -> Tally:
    """No request causes a server error, and every response has the security headers."""
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
    """Every reading equals that of a single reader; a refused reader tries again."""
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
    lines = content.splitlines() if answer.status == 200 else []
    return answer.status, [json.loads(line) for line in lines]


def _surprisals(events: list[Any]) -> list[Any]:
    """The sentences of a reading, without what belongs to this one alone."""
    return [event for event in events if event.get("kind") == "sentence"]
