"""Pretraining really learns, resumes to the same bits, and gives the same on several processes."""

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from dntm.cli.main import main
from dntm.corpus.token_store import StoreConfig, TokenStore, build_store
from dntm.training import run_folder
from dntm.training.batches import Negatives, SentenceBatches
from dntm.training.pretraining import pretrain_run
from tests.training.small_pretraining import config, interrupt_often, losses, outcome, run_on_two


def test_the_encoder_recovers_hidden_words(text: Path, tmp_path: Path) -> None:
    list(pretrain_run(config(text, tmp_path / "run", iterations=300)))

    *_, last = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert json.loads(last)["held_out"]["recall"]["1"] > 0.75


def test_a_run_stopped_at_any_update_resumes_to_the_same_bits(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    list(pretrain_run(config(text, run)))
    expected = outcome(run)
    run.rename(tmp_path / "whole")
    monkeypatch.setattr(run_folder, "CHECKPOINT_SECONDS", 0.0)

    resumes = interrupt_often(lambda resume: pretrain_run(config(text, run), resume=resume), 15)

    assert resumes > 3
    assert outcome(run) == expected


def test_where_nothing_is_held_out_a_validation_has_no_numbers(text: Path, tmp_path: Path) -> None:
    settings = config(text, tmp_path / "run", iterations=4)

    found = list(pretrain_run(replace(settings, store=StoreConfig(min_count=1, held_out=0.0))))

    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line, parse_constant=pytest.fail)["held_out"] for line in lines] == [
        None
    ] * 4
    assert all(progress.validation is None for progress in found)


def test_an_epoch_reads_every_sentence_once_and_any_batch_can_be_the_first(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{'w ' * (1 + n % 7)}.\n" for n in range(333)))
    build_store([tmp_path / "a.txt"], tmp_path / "s", StoreConfig(min_count=1, held_out=0.1))
    batches = SentenceBatches(TokenStore.open(tmp_path / "s"), 4, seed=1)

    epoch = list(islice(batches.numbers(), 75 + 75))

    assert sorted(np.concatenate(epoch[:75])) == list(range(300))
    assert sorted(np.concatenate(epoch[75:])) == list(range(300))
    for start in (1, 63, 64, 70, 75, 99):
        np.testing.assert_array_equal(next(batches.numbers(start)), epoch[start])


def test_negatives_follow_the_smoothed_counts() -> None:
    counts = np.array([16, 5, 5, 81, 0, 1])

    negatives = Negatives.smoothed(counts, 0.75)
    drawn = negatives.draw(20_000, 2, np.random.default_rng(0))

    np.testing.assert_allclose(negatives.share, np.array([8, 0, 0, 27, 0, 1]) / 36)
    shares = np.bincount(drawn.ravel(), minlength=6) / drawn.size
    np.testing.assert_allclose(shares, negatives.share, atol=0.01)


def options(text: Path, run: Path) -> list[str]:
    return [
        *("--text", str(text), "--output-dir", str(run), "--store.min-count", "1"),
        *("--model.embedding-dim", "12", "--model.encoder-dim", "12"),
        *("--training.iterations", "12", "--training.batch", "15", "--training.validations", "3"),
    ]


def test_two_processes_give_the_losses_of_one(text: Path, tmp_path: Path) -> None:
    main(["pretrain", *options(text, tmp_path / "one")])
    together = run_on_two("-m", "dntm", "pretrain", *options(text, tmp_path / "two"))

    assert together.returncode == 0, together.stderr
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-5)
