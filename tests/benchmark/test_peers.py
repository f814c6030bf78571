import json
from pathlib import Path

import pytest

from dntm.cli.main import main

SIZES = ("--model.vocabulary", "80", "--model.embedding-dim", "16", "--model.hidden-dim", "16")


def test_every_peer_has_its_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = (*("--batch", "2", "--rounds", "1", "--threads", "1"), *SIZES)

    main(["benchmark", "peers", *options, "--json", str(tmp_path / "peers.json")])

    printed = capsys.readouterr().out
    costs = {row["name"]: row for row in json.loads((tmp_path / "peers.json").read_text())["peers"]}
    for name in ("A", "D", "D, salience", "Transformer", "after EntityNLM", "5-gram, Kneser-Ney"):
        assert name in printed
        assert costs[name]["trained"] > 0
        assert costs[name]["scored"] > 0
    for name in ("A", "D", "Transformer"):
        assert costs[f"{name}, cache"]["parameters"] == costs[name]["parameters"]
    assert costs["A, dynamic evaluation"]["scored"] < costs["A"]["scored"]
