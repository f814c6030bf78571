import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from dntm.reader.reader import Reader
from dntm.web.app import create_app
from dntm.web.requests import Limits, RawSentence, raw_sentences
from tests.web.asking import Event, posted, spelled, until
from tests.web.tiny import PATIENCE, TEXT, PausingReader, served


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/api/read", {}),
        ("/api/predict", {"sentence": 3, "position": 0}),
        ("/api/maps", {"have": 4}),
    ],
)
def test_for_a_reader_who_leaves_nothing_more_is_computed(
    pausing: PausingReader, path: str, fields: dict[str, int]
) -> None:
    pausing.gate.clear()
    app = create_app(pausing)
    body = json.dumps({"text": TEXT, **fields}).encode()
    with served(app) as address:
        with posted(address, path, body):
            until(lambda: pausing.steps == 2)
        until(lambda: not app.state.server.server_state.connections)
        pausing.gate.set()
        until(lambda: app.state.readings.workers.active == 0)
        time.sleep(0.3)

    assert pausing.steps == 2


def test_a_reader_who_leaves_gives_the_place_back_at_once(pausing: PausingReader) -> None:
    pausing.gate.clear()
    app = create_app(pausing)
    body = json.dumps({"text": TEXT}).encode()
    with served(app) as address:
        with posted(address, "/api/read", body):
            until(lambda: pausing.steps == 2)
        until(lambda: app.state.readings.workers.active == 0)
        pausing.gate.set()


def test_readers_at_the_same_time_each_get_their_own_text(reader: Reader) -> None:
    texts = [TEXT.replace("Marta", f"Marta{chr(97 + number)}") for number in range(12)]

    def events(address: str, text: str) -> list[Event]:
        response = httpx2.post(f"{address}/api/read", json={"text": text}, timeout=PATIENCE)
        return [json.loads(line) for line in response.text.splitlines()]

    with served(create_app(reader)) as address, ThreadPoolExecutor(12) as readers:
        found = list(readers.map(events, [address] * 12, texts))

    for text, answer in zip(texts, found, strict=True):
        assert spelled(answer) == "".join(text.split())
        alone = reader.read(text, entities=("names", "unknown"))
        sums = sum(t["surprisal"] for e in answer if "tokens" in e for t in e["tokens"])
        assert sums == pytest.approx(alone.surprisal)


def test_readings_that_crowd_each_other_out_of_memory_are_not_mixed_up(
    pausing: PausingReader,
) -> None:
    other = "A ferry left. The day came. Every zorrel left. The zorrel slept."
    app = create_app(pausing, Limits(remembered=6))
    with served(app) as address, ThreadPoolExecutor(1) as background:

        def answer(path: str, **body: object) -> httpx2.Response:
            return httpx2.post(f"{address}{path}", json=body, timeout=PATIENCE)

        pausing.passes = 2
        pausing.gate.clear()
        first = background.submit(answer, "/api/read", text=TEXT)
        until(lambda: pausing.steps == 3)
        pausing.passes = 9
        second = answer("/api/read", text=other)
        third = answer("/api/read", text=f"{other} {other}")
        pausing.gate.set()

        readings = [(TEXT, first.result()), (other, second), (f"{other} {other}", third)]
        for text, response in readings:
            name = json.loads(response.text.splitlines()[0])["id"]
            for sentence in range(4):
                place = {"text": text, "sentence": sentence, "position": 1}
                with_name = answer("/api/predict", reading=name, **place)
                assert with_name.json() == answer("/api/predict", **place).json()
        assert len(app.state.readings.memory) <= 6


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


def test_the_page_answers_while_a_text_is_cut_into_sentences(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    cutting, cut = threading.Event(), threading.Event()

    def slowly(text: str) -> list[RawSentence]:
        cutting.set()
        cut.wait(PATIENCE)
        return raw_sentences(text)

    monkeypatch.setattr("dntm.web.requests.raw_sentences", slowly)
    with served(create_app(reader)) as address, ThreadPoolExecutor(1) as background:
        reading = background.submit(
            httpx2.post, f"{address}/api/read", json={"text": "." * 20_000}, timeout=PATIENCE
        )
        cutting.wait(PATIENCE)

        response = httpx2.get(address, timeout=PATIENCE / 2)
        cut.set()

        assert response.status_code == 200
        assert reading.result().status_code == 200
