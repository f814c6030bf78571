"""Commands run as a user runs them, in this process."""

import json
from pathlib import Path

import pytest

from dntm.cli.main import main

Capture = pytest.CaptureFixture[str]
SMALL = (
    *("--model.embedding-dim", "8", "--model.hidden-dim", "8", "--model.encoder-dim", "8"),
    *("--model.context-dim", "8", "--training.epochs", "1"),
)
"""Options of `dntm train` for a very small model."""


def run(*arguments: str | Path) -> None:
    """Run a command."""
    main([str(argument) for argument in arguments])


def stories(
    folder: Path, sentences: list[list[str]], clusters: list[list[list[int]]], train: int = 6
) -> Path:
    """Build a dataset in which every document is the same story."""
    folder.mkdir(exist_ok=True)
    story = {"sentences": sentences, "clusters": clusters}
    for split, count in (("train", train), ("dev", 2), ("test", 2)):
        lines = [json.dumps({"doc_key": f"{split}{i}", **story}) for i in range(count)]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    run("data", "build", folder, "--output-dir", folder / "dataset", "--max-entities", "3")
    return folder / "dataset"


def fails(capsys: Capture, *arguments: str | Path) -> str:
    """What a command says that ends with an error."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as exit_:
        run(*arguments)
    error = capsys.readouterr().err
    assert exit_.value.code not in (0, None)
    assert "Traceback" not in error
    return error
