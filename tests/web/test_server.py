"""Clients that leave, several clients at once, and a server that stops."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from dntm.reader.reader import Reader
from dntm.web.app import create_app, examples
from tests.web.asking import Event, posted, spelled, until
from tests.web.tiny import PATIENCE, TEXT, PausingReader, served


def test_nothing_more_is_computed_for_a_client_that_leaves(pausing: PausingReader) -> None:
    pausing.gate.clear()
    app = create_app(pausing)
    body = json.dumps({"text": TEXT}).encode()
    with served(app) as address:
        with posted(address, "/api/read", body):
            until(lambda: pausing.steps == 2)
        until(lambda: not app.state.server.server_state.connections)
        pausing.gate.set()
        time.sleep(0.3)

    assert pausing.steps == 2


def test_clients_at_the_same_time_each_get_their_own_text(reader: Reader) -> None:
    texts = [f"{example.text} The {chr(97 + n) * 3} left." for n, example in enumerate(examples())]

    def events(address: str, text: str) -> list[Event]:
        response = httpx2.post(f"{address}/api/read", json={"text": text}, timeout=PATIENCE)
        return [json.loads(line) for line in response.text.splitlines()]

    with served(create_app(reader)) as address, ThreadPoolExecutor(6) as clients:
        found = list(clients.map(events, [address] * 6, texts))

    for text, answer in zip(texts, found, strict=True):
        tokens = [token for event in answer if "tokens" in event for token in event["tokens"]]
        assert spelled(answer) == "".join(text.split())
        alone = reader.read(text, entities=("names", "unknown"))
        assert sum(t["surprisal"] for t in tokens) == pytest.approx(alone.surprisal)


def test_the_page_answers_while_the_model_computes(pausing: PausingReader) -> None:
    pausing.gate.clear()
    with served(create_app(pausing)) as address, ThreadPoolExecutor(1) as background:
        reading = background.submit(
            httpx2.post, f"{address}/api/read", json={"text": TEXT}, timeout=PATIENCE
        )
        until(lambda: pausing.steps == 2)

        response = httpx2.get(address, timeout=PATIENCE / 2)
        pausing.gate.set()

        assert response.status_code == 200
        assert reading.result().status_code == 200


def test_a_server_that_stops_ends_readings_with_a_message(checkpoint: Path, tmp_path: Path) -> None:
    script = tmp_path / "waiting.py"
    script.write_text(
        "import sys\n"
        "import tests.web.tiny as tiny\n"
        "from dntm.reader.reader import Reader\n"
        "from dntm.web.app import create_app\n"
        "from dntm.web.server import address, bind, serve\n"
        "tiny.PATIENCE = 2.0\n"
        "reader = tiny.PausingReader(Reader.from_pretrained(sys.argv[1]).models)\n"
        "reader.gate.clear()\n"
        "listening = bind('127.0.0.1', 0)\n"
        "print(address(listening), flush=True)\n"
        "serve(create_app(reader), listening, browser=False)\n",
        encoding="utf-8",
    )
    here = Path(__file__).parents[2]
    path = os.pathsep.join((str(here), *filter(None, sys.path)))
    process = subprocess.Popen(
        [sys.executable, str(script), str(checkpoint)],
        cwd=here,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    found = re.search(r"http://[\d.:]+", process.stdout.readline())
    assert found
    with posted(found[0], "/api/read", json.dumps({"text": TEXT}).encode()) as connection:
        assert connection.recv(10) == b"HTTP/1.1 2"
        process.send_signal(signal.SIGTERM)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
        _, errors = process.communicate(timeout=PATIENCE)

    assert b"the server is stopping" in answer
    assert "Traceback" not in errors
