"""Commands run as a user runs them, in this process."""

from pathlib import Path

import pytest

from dntm.cli.main import main

SMALL = (
    *("--model.embedding-dim", "8", "--model.hidden-dim", "8", "--model.encoder-dim", "8"),
    *("--model.context-dim", "8", "--training.epochs", "1"),
)
"""Options of `dntm train` for a very small model."""


def run(*arguments: str | Path) -> None:
    """Run a command."""
    main([str(argument) for argument in arguments])


def fails(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """What a command says that ends with an error."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as exit_:
        run(*arguments)
    error = capsys.readouterr().err
    assert exit_.value.code not in (0, None)
    assert "Traceback" not in error
    return error
