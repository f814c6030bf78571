"""The benchmark of reading a long text: what it counts is what was read."""

import json
import re
from pathlib import Path

import pytest

from dntm.cli.main import main
from tests.reader.small import STORY, checkpoint


@pytest.mark.parametrize("precision", ["double", "single"])
def test_words_and_memory_are_those_of_the_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], precision: str
) -> None:
    text, numbers = tmp_path / "tale.txt", tmp_path / "numbers.json"
    text.write_text(f"{STORY}\n\n" * 20, encoding="utf-8")
    model = checkpoint(tmp_path / "model")
    options = ["--model", str(model), "--precision", precision, "--json", str(numbers)]

    main(["benchmark", "read", str(text), *options])

    printed, found = capsys.readouterr().out, json.loads(numbers.read_text())
    assert f"{20 * len(STORY.split())} words of {text}, 2 entities" in printed
    assert re.search(rf"both models +[\d,]+ words/s, {precision} precision", printed)
    assert found["words"] == 20 * len(STORY.split())
    assert found["tokens"] == 20 * 25
    assert 0 < found["memory_early"] <= found["memory_end"]
    assert found["words_per_second"] < found["output_words_per_second"]
