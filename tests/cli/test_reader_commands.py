import csv
import io
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dntm.cli.read import html_page
from dntm.reader.reader import Reader
from dntm.reader.reading import COLUMNS
from tests.cli.running import Capture, fails, run
from tests.reader.small import STORY, TALES


@pytest.fixture
def story(tmp_path: Path) -> Path:
    (tmp_path / "story.txt").write_text(STORY)
    return tmp_path / "story.txt"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_an_html_page_takes_the_text_as_data_and_needs_nothing_else(
    model: Path, tmp_path: Path
) -> None:
    evil = '<script>alert("Ann")</script> met <img src=x onerror=y> Ann & "Ann" . Ann left .'
    (tmp_path / "<b>.txt").write_text(evil)

    source, target = tmp_path / "<b>.txt", tmp_path / "o.html"
    run("read", source, "--model", model, "--output", target)

    page = Tags()
    page.feed(target.read_text())
    assert not {"script", "img", "b", "link", "iframe"}.intersection(page.tags)
    assert not {"onerror", "src", "href"}.intersection(page.attributes)
    assert "< script >" in page.text.replace("\n", " ")


def test_an_html_page_has_the_best_guess_above_unknown_words_only(model: Path) -> None:
    reading = Reader.from_pretrained(model).read(STORY)
    [zork] = [number for number, name in reading.entities.items() if name == "zork"]

    page = html_page(reading, [zork])

    guesses = [state.predicted_words[0].word for _, state in reading.trail(zork)]
    assert re.findall(r'data-best="(.*?)"', page) == guesses
    assert page.index('<h2 class="unknown"') == page.index("<h2")
    assert page.count('class="word entity') > len(guesses)


def test_read_prints_the_text_and_the_states_of_each_entity(
    model: Path, story: Path, capsys: Capture
) -> None:
    run("read", story, "--model", model)

    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Ann [1] kept a zork [2]."
    assert "Ann [1], mentioned 3 times" in lines
    assert sum(line.startswith("  after sentence") for line in lines) == 5


def test_read_in_colour_prints_no_control_characters(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "odd.txt").write_text("\x1b[2J Ann met Ann \x07\n")

    run("read", tmp_path / "odd.txt", "--model", model, "--color", "always")

    printed = capsys.readouterr().out
    assert "\x1b[2J" not in printed
    assert "\x07" not in printed
    assert "1;31mAnn\x1b[0m" in printed


def test_read_as_json_equals_the_reading(model: Path, story: Path, capsys: Capture) -> None:
    run("read", story, "--model", model, "--format", "json", "--unit", "nats")

    found = json.loads(capsys.readouterr().out)
    expected = Reader.from_pretrained(model).read(STORY, unit="nats")
    assert found["unit"] == "nats"
    assert found["totals"] == expected.to_dict()["totals"]


def test_score_prints_one_row_per_token(model: Path, tmp_path: Path, capsys: Capture) -> None:
    paths = []
    for number, tale in enumerate([*TALES, 'She met "Ann".']):
        paths.append(tmp_path / f"{number}.txt")
        paths[-1].write_text(tale)

    run("score", *paths, "--model", model)

    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out), delimiter="\t"))
    reader = Reader.from_pretrained(model)
    expected = [reader.read(path.read_text()) for path in paths]
    for row, token in zip(rows, (t for r in expected for t in r.tokens), strict=True):
        assert (row["word"], row["group"]) == (token.word, token.group)
        assert float(row["surprisal"]) == pytest.approx(token.surprisal, abs=1e-6)
        assert float(row["static_surprisal"]) == pytest.approx(token.static_surprisal, abs=1e-6)
    assert [rows[0][name] for name in COLUMNS[:8]] == ["0", "1", "1", "1", "0", "3", "0", "The"]
    assert {row["document"] for row in rows} == {path.stem for path in paths}


def test_an_interrupted_score_leaves_no_half_file_and_skips_on_request(
    model: Path, story: Path, tmp_path: Path, capsys: Capture
) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"\xff")
    command = ("score", bad, story, "--model", model, "--output", tmp_path / "o")

    fails(capsys, *command)
    nothing = (tmp_path / "o").exists()
    with pytest.raises(SystemExit):
        run("score", story, bad, "--model", model)
    printed = capsys.readouterr()
    run(*command, "--on-error", "skip", "--format", "jsonl")

    assert not nothing
    assert printed.out.splitlines()[-1].split("\t")[7] == "<eos>"  # what comes before is scored
    assert "bad.txt, line 1: byte 0xff" in printed.err
    lines = (tmp_path / "o").read_text().splitlines()
    assert json.loads(lines[0])["word"] == "The"
    assert "skipped: " in capsys.readouterr().err


def test_score_names_the_files_of_a_folder_that_it_ignores_and_prints_nothing_if_one_is_missing(
    model: Path, story: Path, capsys: Capture
) -> None:
    (story.parent / "story.doc").write_text("not plain text")

    run("score", story.parent, "--model", model)
    printed = capsys.readouterr()
    with pytest.raises(SystemExit):
        run("score", story, story.parent / "none.txt", "--model", model)
    missing = capsys.readouterr()

    (story.parent / "several.txt").write_text("She sat.\n\n\u200b\n\nHe left.\n")
    run("score", story.parent / "several.txt", "--documents", "blank-line", "--model", model)

    assert "He" in capsys.readouterr().out, "an empty document ends no file"
    assert {line.split("\t")[0] for line in printed.out.splitlines()} == {"document", "story"}
    assert "ignored files that are not text: story.doc" in printed.err
    assert not missing.out


def test_continue_and_fill_print_the_results_of_the_reader(
    model: Path, story: Path, capsys: Capture
) -> None:
    reader = Reader.from_pretrained(model)

    run("continue", story, "--model", model, "--seed=3", "--samples=2", "--tokens=9")
    continued = capsys.readouterr().out.splitlines()
    run("fill", "[2] met [].", "--history", story, "--model", model, "--top", "1")
    filled = capsys.readouterr().out.splitlines()

    assert continued == [reader.continue_text(STORY, tokens=9, seed=s).text for s in (3, 4)]
    found = reader.fill("[2] met [].", STORY)
    best, static = found[0], min(found, key=lambda filling: filling.static_surprisal)
    assert filled[2].startswith(best.word)
    assert f"{best.surprisal:.2f}" in filled[2]
    assert f"{static.static_surprisal:.2f}" in filled[2]


def test_continue_and_fill_print_no_control_characters(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    odd = {"sentences": [["Ann\x07", "met", "Ann\x07"]], "clusters": [[[0, 0], [2, 2]]]}
    (tmp_path / "odd.jsonl").write_text(json.dumps(odd) + "\n")

    entities = ("--choose", "entities")
    run("fill", "[] left", "--history", tmp_path / "odd.jsonl", "--model", model, *entities)
    filled = capsys.readouterr().out
    run("continue", tmp_path / "odd.jsonl", "--model", model, "--samples", "9", "--tokens", "9")
    continued = capsys.readouterr().out

    assert "\x07" not in filled + continued
    assert "Ann\N{REPLACEMENT CHARACTER} [1]" in filled
    assert "Ann\N{REPLACEMENT CHARACTER}" in continued


def test_errors_name_the_problem(model: Path, story: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "empty.txt").write_text("\n \n")
    (tmp_path / "nul.txt").write_bytes(b"one\ntwo\0")

    assert "line 2: a NUL byte" in fails(capsys, "read", tmp_path / "nul.txt", "--model", model)
    missing = fails(capsys, "read", "She met Ann.", "--model", model)
    assert "She met Ann.: no such file or folder" in missing
    assert "standard input" in missing
    for command in (("read",), ("continue",), ("fill", "[]", "--history")):
        assert "is a folder, expected a file" in fails(capsys, *command, tmp_path, "--model", model)
    assert "empty" in fails(capsys, "read", tmp_path / "empty.txt", "--model", model)
    assert "has no chains" in fails(capsys, "read", story, "--model", model, "--entities", "chains")
    resolved = ("read", story, "--model", model, "--entities", "resolver")
    assert "--coref-model" in fails(capsys, *resolved)
    assert "has no document 2" in fails(capsys, "read", story, "--model", model, "--document", "2")
    assert "is missing" in fails(capsys, "read", story, "--model", tmp_path)
    assert "no such folder" in fails(capsys, "read", story, "--model", tmp_path / "none")
    assert "no such folder" in fails(capsys, "evaluate", tmp_path / "none")
    before = story.read_text()
    assert "is an input file" in fails(capsys, "read", story, "--output", story, "--model", model)
    assert story.read_text() == before
    assert "no file given" in fails(capsys, "score", "--model", model)
    assert "top is 0" in fails(capsys, "fill", "She []", "--top", "0", "--model", model)
    assert "document is 0" in fails(capsys, "read", story, "--model", model, "--document", "0")


HELP = """
import sys
from dntm.cli.main import COMMANDS, main
for command in COMMANDS:
    try:
        main([*command.split(), "--help"])
    except SystemExit as exit_:
        assert not exit_.code, command
    assert "torch" not in sys.modules, command
"""


def test_no_help_text_imports_torch() -> None:
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["read", "score", "fill", "continue", "serve"])
def test_help_fits_the_terminal_and_lists_few_options_first(command: str) -> None:
    def lines(option: str) -> list[str]:
        call = [sys.executable, "-m", "dntm", command, option]
        terminal = {**os.environ, "COLUMNS": "80"}
        return subprocess.check_output(call, text=True, env=terminal).splitlines()

    short, full = lines("--help"), lines("--help-all")

    assert max(map(len, short + full)) <= 80
    assert [sum(line.startswith("│ --") for line in some) > 5 for some in (short, full)] == [0, 1]
    assert short[-1] == f"All options: dntm {command} --help-all"
