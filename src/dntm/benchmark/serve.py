"""The page under load: many readers at once, each with texts of its own, on this machine alone.

A server is started as a process of its own on the loopback address and a free port. First one
reader at a time asks, and the time to the first sentence is taken from a warm server; then all
readers read without a pause. Every text is different (its names carry a mark of the reader and the
round), so nothing can be answered from memory, and every answer must spell out exactly the text
that was sent: a mixed text is found by its first wrong letter.
"""

import http.client
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from dntm.web.app import examples

WARM_UP = 5
ALONE = 30
TIMEOUT = 120.0
_NAME = re.compile(r"(?<=[a-z] )[A-Z][a-z]{2,}")


@dataclass(frozen=True, kw_only=True)
class ServeBenchmark:
    """What was measured."""

    first_alone: Sequence[float]
    """Seconds to the first sentence, one reader at a time."""
    first_together: Sequence[float]
    """The same with all readers at once."""
    readings: int
    sentences: int
    seconds: float
    errors: Sequence[str]
    mixed: int
    """Answers that did not spell out the text that was sent."""
    memory_mb: Sequence[float]
    """The server's memory, in ten equal parts of the time; empty where the system does not say."""


@dataclass
class _Tally:
    first: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    readings: int = 0
    sentences: int = 0
    mixed: int = 0


def benchmark_serving(
    model: Path | None, *, readers: int, seconds: float, threads: int
) -> ServeBenchmark:
    """Start a server, let the readers read, and end it."""
    with _server(model, threads) as (host, process):
        warm_up, alone = _Tally(), _Tally()
        for number in range(WARM_UP + ALONE):
            _read(host, marked_text(number, "w"), warm_up if number < WARM_UP else alone)
        together = [_Tally() for _ in range(readers)]
        stop = time.monotonic() + seconds
        workers = [
            threading.Thread(target=_keep_reading, args=(host, number, stop, tally))
            for number, tally in enumerate(together)
        ]
        began = time.monotonic()
        for worker in workers:
            worker.start()
        memory = _watch(process.pid, stop, seconds)
        for worker in workers:
            worker.join()
        took = time.monotonic() - began
    return ServeBenchmark(
        first_alone=alone.first,
        first_together=[second for tally in together for second in tally.first],
        readings=sum(tally.readings for tally in together),
        sentences=sum(tally.sentences for tally in together),
        seconds=took,
        errors=[error for tally in (warm_up, alone, *together) for error in tally.errors],
        mixed=sum(tally.mixed for tally in (warm_up, alone, *together)),
        memory_mb=memory,
    )


def marked_text(number: int, mark: str) -> str:
    """One of the example texts in which every name carries the mark and the number."""
    letters = mark + np.base_repr(number, 26).lower().translate(_LETTERS)
    text = examples()[number % len(examples())].text
    names = {*_NAME.findall(text)}
    return re.sub(r"[A-Z][a-z]+", lambda m: m[0] + letters if m[0] in names else m[0], text)


_LETTERS = str.maketrans("0123456789", "qrstuvwxyz")


def spelled(events: Sequence[dict[str, object]]) -> str:
    """The text that a reading's sentences spell out, without white space."""
    tokens = [t for event in events if event["kind"] == "sentence" for t in event["tokens"]]  # type: ignore[attr-defined]
    return "".join("".join(token["word"].split()) for token in tokens if not token["end"])


def _keep_reading(host: str, reader: int, stop: float, tally: _Tally) -> None:
    number = 0
    while time.monotonic() < stop:
        _read(host, marked_text(number, f"{chr(97 + reader % 26)}x{reader // 26}"), tally)
        number += 1


def _read(host: str, text: str, tally: _Tally) -> None:
    body = json.dumps({"text": text})
    connection = http.client.HTTPConnection(host, timeout=TIMEOUT)
    events: list[dict[str, object]] = []
    began = time.monotonic()
    try:
        connection.request("POST", "/api/read", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            tally.errors.append(f"{response.status}: {response.read(300)!r}")
            return
        while line := response.readline():
            events.append(json.loads(line))
            if events[-1]["kind"] == "sentence":
                tally.sentences += 1
                if events[-1]["index"] == 0:
                    tally.first.append(time.monotonic() - began)
    except (OSError, ValueError, http.client.HTTPException) as error:
        tally.errors.append(f"{type(error).__name__}: {error}")
        return
    finally:
        connection.close()
    if not events or events[-1]["kind"] != "end":
        tally.errors.append(f"no end: {events[-1:]}")
        return
    tally.readings += 1
    tally.mixed += spelled(events) != "".join(text.split())


@contextmanager
def _server(model: Path | None, threads: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "dntm", "serve", "--port", "0", "--no-browser"]
    command += ["--threads", str(threads), *(["--model", str(model)] if model else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            if not found:
                raise ValueError("the server did not start")
            host = urlsplit(found[0]).netloc
            _wait(host)
            yield host, process
        finally:
            process.terminate()
            process.wait(timeout=30)


def _wait(host: str) -> None:
    name, port = host.rsplit(":", 1)
    for _ in range(100):
        try:
            socket.create_connection((name, int(port)), timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise ValueError(f"the server on {host} does not answer")


def _watch(process: int, stop: float, seconds: float) -> list[float]:
    status = Path(f"/proc/{process}/status")
    memory = []
    for part in range(1, 11):
        time.sleep(max(0.0, stop - (10 - part) / 10 * seconds - time.monotonic()))
        found = re.search(r"VmRSS:\s*(\d+)", status.read_text()) if status.exists() else None
        memory += [int(found[1]) / 1024] if found else []
    return memory
