from pathlib import Path

import pytest

from tests.cli.running import Capture, fails, run


@pytest.fixture
def dataset(tmp_path: Path, fixtures: Path, capsys: Capture) -> Path:
    target, source = tmp_path / "tale", fixtures / "story.v4_gold_conll"
    run("data", "build", source, "--output-dir", target, "--fractions", "1", "0", "0")
    return target


def test_build_and_stats_print_the_papers_numbers_beside_ours(
    dataset: Path, capsys: Capture
) -> None:
    built = capsys.readouterr().out
    run("data", "stats", dataset)

    for printed in (built, capsys.readouterr().out):
        assert "# of documents" in printed
        assert "2 (2725)" in printed
        assert "1.50 (25.7)" in printed
    assert str(dataset) in built


def test_show_prints_entities_and_on_request_their_words(dataset: Path, capsys: Capture) -> None:
    run("data", "show", dataset, "--document", "1")
    plain = capsys.readouterr().out
    run("data", "show", dataset, "--document", "1", "--original")
    original = capsys.readouterr().out

    assert "[1] sold [1] mule in North Ford ." in plain
    assert "[1: Old Marta] sold [1: her] mule" in original


def test_list_names_every_corpus_with_its_license(capsys: Capture) -> None:
    run("data", "list")

    printed = capsys.readouterr().out
    for name in ("sotu", "storyworld", "ontogum", "litbank", "amalgum", "ontonotes", "preco"):
        assert name in printed
    assert printed.count("license:") == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("data", "build", "no/such/file"), "no/such/file: no such file or folder"),
        (("data", "build", "ontonotes"), "dntm data build ontonotes --from FOLDER"),
        (("data", "stats", "no/such/folder"), "is no dataset"),
        (("data", "build", "sotu", "--vocabulary-size", "0", "--output-dir", "x"), "more than 53"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_1(
    arguments: tuple[str, ...],
    message: str,
    capsys: Capture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)

    assert message in fails(capsys, *arguments).splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_a_document_outside_the_split_is_named(dataset: Path, capsys: Capture) -> None:
    error = fails(capsys, "data", "show", dataset, "--document", "9")

    assert "document 9 of split 'train', expected 1 to 2" in error


def test_help_and_unknown_commands(capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="0"):
        run("--help")

    assert "unknown command 'frobnicate'" in fails(capsys, "frobnicate")
    assert "did you mean dntm read?" in fails(capsys, "raed")
    assert "did you mean dntm data build?" in fails(capsys, "data", "biuld")
    assert "did you mean" not in fails(capsys, "xyzzy")
