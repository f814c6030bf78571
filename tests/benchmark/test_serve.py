"""The benchmark of the page: what it measures, and what it says when nothing can be measured."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dntm.benchmark import serve
from dntm.cli.main import main
from tests.web.tiny import save_tiny_model

TINY = ["benchmark", "serve", "--readers", "2", "--seconds", "1", "--threads", "1"]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "WARM_UP", 1)
    monkeypatch.setattr(serve, "ALONE", 3)


def without_server(monkeypatch: pytest.MonkeyPatch, read: Any) -> None:
    @contextmanager
    def server(*_: object) -> Iterator[tuple[str, SimpleNamespace]]:
        yield "nowhere:1", SimpleNamespace(pid=os.getpid())

    monkeypatch.setattr(serve, "_server", server)
    monkeypatch.setattr(serve, "_read", read)


def test_readers_read_without_errors_and_without_mixing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = save_tiny_model(tmp_path / "model")

    main([*TINY, "--model", str(model)])

    printed = dict(
        line.split("  ", 1) for line in capsys.readouterr().out.splitlines() if "  " in line
    )
    assert "ms median" in printed["first sentence, one reader"]
    assert int(printed["readings"].split()[0].replace(",", "")) >= 2
    assert printed["mixed texts"].split() == ["0"]
    assert printed["errors"].split() == ["0"]


def test_where_no_reading_succeeds_the_first_error_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_host: str, _text: str, tally: serve._Tally) -> None:
        time.sleep(0.1)
        tally.errors.append("503: busy")

    without_server(monkeypatch, fail)

    with pytest.raises(SystemExit):
        main(TINY)

    shown = capsys.readouterr()
    assert "no reading" in shown.out
    assert "the first: 503: busy" in shown.err


def test_a_failed_warm_up_takes_nothing_from_what_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []

    def read(_host: str, text: str, tally: serve._Tally) -> None:
        time.sleep(0.1)
        calls.append(text)
        if len(calls) == 1:
            tally.errors.append("503: busy")
        else:
            tally.first.append(float(len(calls)))

    without_server(monkeypatch, read)

    found = serve.benchmark_serving(None, readers=1, seconds=1, threads=1)

    assert found.first_alone == [2.0, 3.0, 4.0]
    assert found.errors == ["503: busy"]
