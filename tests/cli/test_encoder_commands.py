"""Commands about pretraining: how good an encoder is, what it says of a gap, how fast it learns."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dntm.cli.main import main
from dntm.evaluation import guesses
from dntm.evaluation.guesses import Recovery
from dntm.model.pretrained_encoder import PretrainedEncoder, log_share
from dntm.training import pretraining
from dntm.training.batches import Negatives

SIZES = ("--model.embedding-dim", "8", "--model.encoder-dim", "8")
TEXT = "the dog barked at the cat .\n\nthe cat purred at the dog .\n\n" * 40


def run(*arguments: str | Path) -> None:
    main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pretrained")
    (folder / "text.txt").write_text(TEXT)
    length = ("--training.iterations", "20", "--training.batch", "8", "--training.smoothing", "0")
    store = ("--store.min-count", "1", "--store.held-out", "0.1")
    run("pretrain", "--text", folder / "text.txt", "--output-dir", folder / "run", *SIZES, *length,
        *store)  # fmt: skip
    return folder / "run"


@pytest.fixture(autouse=True)
def quick_bag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretraining, "BAG_UPDATES", 3)


def test_the_encoder_stands_beside_bag_and_unigram(
    pretrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("evaluate-encoder", pretrained, "--json", tmp_path / "encoder.json")

    lines = capsys.readouterr().out.splitlines()
    numbers = json.loads((tmp_path / "encoder.json").read_text())
    assert lines[0].startswith("56 hidden words")
    assert [line.split("  ")[0] for line in lines[2:5]] == ["encoder", "bag of context", "unigram"]
    assert numbers["encoder"]["words"] == numbers["unigram"]["words"] == 56
    # Seven words are known, and the special rows stand behind them all.
    assert numbers["unigram"]["recall"]["10"] == 1.0


def test_beside_an_encoder_that_names_the_bag_is_ranked_as_it_was_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    run("pretrain", "--recipe", "naming", "--text", tmp_path / "text.txt", *SIZES,
        "--output-dir", tmp_path / "run", "--model.context-dim", "8", "--store.min-count", "1",
        "--store.without-vector", "1", "--training.iterations", "2", "--training.batch", "8",
        "--store.held-out", "0.1")  # fmt: skip
    ranked: list[tuple[torch.Tensor, torch.Tensor]] = []

    def noted(sentences: Any, contexts: Any, x: Any, bias: Any, answers: Any) -> Recovery:
        list(sentences)
        ranked.append((x, bias))
        return Recovery(1, {1: 0.5, 10: 0.5, 100: 0.5}, 0.5)

    monkeypatch.setattr(guesses, "recover", noted)
    run("evaluate-encoder", tmp_path / "run")

    pretrained = PretrainedEncoder.load(tmp_path / "run" / "best")
    (by_encoder, none), (by_bag, share), _ = ranked
    torch.testing.assert_close(by_encoder.norm(dim=1), torch.ones(len(by_encoder)))
    assert not none.any()
    assert by_bag.equal(pretrained.x)
    assert share.equal(log_share(pretrained.share))


def test_a_pretraining_goes_on_with_nothing_but_its_folder(
    pretrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pretrained / "all_results.json").unlink()

    run("pretrain", "--output-dir", pretrained, "--resume")

    assert (pretrained / "all_results.json").exists()
    assert capsys.readouterr().out == f"run: {pretrained}\n"


def test_options_for_a_text_are_errors_without_one(
    pretrained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run("evaluate-encoder", pretrained, "--longest", "5")

    assert "--longest has no effect without --text" in capsys.readouterr().err


def test_the_bag_learns_with_the_negatives_of_the_run(
    pretrained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = []

    class Noted(Negatives):
        def __init__(self, share: np.ndarray) -> None:
            super().__init__(share)
            shares.append(share)

    monkeypatch.setattr(pretraining, "Negatives", Noted)
    run("evaluate-encoder", pretrained)

    own = PretrainedEncoder.load(pretrained / "best").share
    np.testing.assert_allclose(shares[0], own)
    assert len(torch.unique(own[own > 0])) == 1  # smoothing 0: all words alike


def test_other_text_is_read_with_the_care_of_pretraining(
    pretrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "new.txt").write_text("the dog purred .\n\n\u00a0\u00a0\n\nthe cat barked .\n")

    run("evaluate-encoder", pretrained, "--text", tmp_path / "new.txt", "--no-bag")

    printed = capsys.readouterr().out
    assert printed.startswith("8 hidden words")
    assert "bag of context" not in printed


def test_without_a_sentence_there_is_nothing_to_evaluate(
    pretrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = shutil.copytree(pretrained, tmp_path / "copy")
    information = json.loads((copy / "text" / "text.json").read_text())
    information["files"] = [[0, 80, 80]]
    (copy / "text" / "text.json").write_text(json.dumps(information))

    with pytest.raises(SystemExit):
        run("evaluate-encoder", copy)

    assert "no sentence to evaluate on: pass --text" in capsys.readouterr().err


@pytest.mark.parametrize("by", ["probability", "fit"])
def test_neighbours_are_known_words_for_each_gap(
    pretrained: Path, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    run("neighbours", pretrained, "the [] barked", "[] purred at it", "--count", "3", "--by", by)

    first, words, second, others = capsys.readouterr().out.splitlines()
    known = {"the", "dog", "barked", "at", "cat", ".", "purred"}
    assert (first, second) == ("the [] barked", "[] purred at it")
    for line in (words, others):
        assert len(line.split()) == 3
        assert set(line.split()) <= known


def test_a_sentence_without_one_gap_is_named(
    pretrained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run("neighbours", pretrained, "the [] barked at []")

    assert "has 2 gaps [], expected one" in capsys.readouterr().err


def test_the_benchmark_writes_what_it_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "speed.json"

    run("benchmark", "pretrain", "--vocabulary", "50", "--rounds", "1", "--json", target, *SIZES)

    numbers = json.loads(target.read_text())
    assert f"{numbers['words_per_second']:,.0f} words/s" in capsys.readouterr().out
    assert numbers["rounds"] == 1


def test_neighbours_of_the_model_in_the_box_are_what_it_takes_the_gap_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()

    run("neighbours", "default", "She drank a cup of [] .", "He lives in [] .", "--count", "4")

    first, drinks, second, places = capsys.readouterr().out.splitlines()
    assert (first, second) == ("She drank a cup of [] .", "He lives in [] .")
    assert len(drinks.split()) == len(places.split()) == 4
    assert {"tea", "coffee"} & set(drinks.split())
    assert drinks != places
