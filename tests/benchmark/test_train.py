"""The benchmark compares two ways to the same numbers."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from dntm.benchmark.documents import random_document
from dntm.benchmark.naive import NaiveModel
from dntm.benchmark.step import TRUNCATION, make_model
from dntm.benchmark.train import benchmark_training, make_batches
from dntm.benchmark.work import count_work
from dntm.cli.main import main
from dntm.model.config import ModelConfig
from dntm.training.batches import stretches

SMALL = ModelConfig(
    vocabulary=80, entities=50, embedding_dim=8, hidden_dim=8, encoder_dim=8, context_dim=8
)


@pytest.fixture
def dataset(tmp_path: Path, fixtures: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A few documents of one short sentence each or two."""
    target = tmp_path / "ferry"
    main(
        ["data", "build", str(fixtures / "ferry.conllu"), "--output-dir", str(target),
         "--fractions", "1", "0", "0", "--max-sentences", "1"]
    )  # fmt: skip
    capsys.readouterr()
    return target


def test_the_obvious_loop_gives_the_same_loss_and_gradients() -> None:
    model, naive = (
        make_model(SMALL, seed=3).double(),
        NaiveModel(make_model(SMALL, seed=3).double()),
    )
    naive = naive.double()
    _, batches = make_batches(SMALL, None, 4, seed=5)
    ours = theirs = model.initial_state(4)

    for sentences, goes_on, kept in stretches(batches[0], TRUNCATION):
        expected, theirs = naive.loss(sentences, theirs.detach().select(kept))
        nats, _, ours = model.loss(model.plan(sentences, goes_on), ours.detach().select(kept))
        expected.backward()  # type: ignore[no-untyped-call]
        nats.backward()  # type: ignore[no-untyped-call]

        assert nats.item() == pytest.approx(expected.item(), rel=1e-10)

    torch.testing.assert_close(model.x.weight.grad, naive.x.weight.grad)
    torch.testing.assert_close(model.lstm.W_hh.grad, naive.lstm.weight_hh_l0.grad)


def test_random_documents_have_the_statistics_of_the_corpus() -> None:
    random = np.random.default_rng(1)

    documents = [random_document(random, vocabulary=10_000, entities=50) for _ in range(300)]

    sentences = [s for document in documents for s in document]
    mentions = [[row for s in d for row in s if 3 <= row < 53] for d in documents]
    assert np.mean([len(d) for d in documents]) == pytest.approx(22.7, rel=0.1)
    assert np.mean([len(s) - 2 for s in sentences]) == pytest.approx(18, rel=0.1)
    assert np.mean([len(set(m)) for m in mentions]) == pytest.approx(14, rel=0.15)
    assert np.mean([len(m) / len(set(m)) for m in mentions]) == pytest.approx(3.3, rel=0.15)


def test_the_work_of_a_token_is_that_of_the_equations() -> None:
    sentence = [1, 60, 61, 2]

    tokens, flops = count_work(make_model(SMALL, seed=3), [[sentence, sentence]], TRUNCATION)

    lstm, output = 8 * (4 * 8 * 16), 6 * 8 * (80 + 50)
    assert (tokens, flops) == (6, 2 * 3 * (lstm + output))


def test_the_encoders_work_ends_at_the_mentions_it_has_to_reach() -> None:
    model = make_model(SMALL, seed=3)
    plain, mentioned = [1, 60, 61, 62, 63, 2], [1, 60, 3, 62, 63, 2]

    _, without = count_work(model, [[plain, plain]], TRUNCATION)
    _, flops = count_work(model, [[mentioned, plain]], TRUNCATION)

    left, right = 2, 3
    encoder = (left + right) * (4 * 8 * 16) + 2 * 8 * 8
    merged = 6 * 8 * 8 + 8 * 8 + 8 * 8
    assert flops - without == 2 * (2 * encoder + 3 * merged)


def test_a_small_benchmark_measures_everything() -> None:
    found = benchmark_training(SMALL, batch=2, rounds=1, long=40)

    assert found.threads == torch.get_num_threads()
    assert min(found.of_ideal, found.speedup, found.long_over_short) > 0
    assert 0.05 < found.peak_memory_gb < 10


def test_memory_is_that_of_the_training_process_alone() -> None:
    mine = torch.ones(150_000_000)

    found = benchmark_training(SMALL, batch=1, rounds=1, long=1)

    assert found.peak_memory_gb < mine.nbytes / 1e9


def test_a_sample_of_a_dataset_is_the_same_for_a_seed(dataset: Path) -> None:
    config, batches = make_batches(SMALL, dataset, 1, seed=1)
    _, again = make_batches(SMALL, dataset, 1, seed=1)

    rows = len((dataset / "vocab.txt").read_text(encoding="utf-8").splitlines())
    assert config.vocabulary == rows
    assert batches == again
    assert len({str(documents) for documents in batches}) == 3


def test_a_dataset_must_fill_the_batches(dataset: Path) -> None:
    with pytest.raises(ValueError, match="expected at least 300"):
        make_batches(SMALL, dataset, 100, seed=1)


def test_the_command_prints_a_table_and_writes_its_numbers(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = [f"--model.{name}-dim=8" for name in ("embedding", "hidden", "encoder", "context")]
    path = tmp_path / "numbers.json"

    main(["benchmark", "train", f"--dataset={dataset}", "--batch=1", "--rounds=1",
          f"--json={path}", *sizes])  # fmt: skip

    printed = capsys.readouterr().out
    numbers = json.loads(path.read_text(encoding="utf-8"))
    assert f"naive loop       {numbers['naive_tokens_per_second']:12,.0f} tokens/s" in printed
    assert f"({numbers['of_ideal']:.0%})" in printed
    assert numbers["text"] == str(dataset)


@pytest.mark.parametrize(
    ("option", "message"),
    [("--threads=-1", "threads is -1"), ("--batch=0", "batch is 0"), ("--rounds=0", "rounds is 0")],
)
def test_impossible_settings_are_named(
    option: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["benchmark", "train", option])

    assert message in capsys.readouterr().err


def test_the_obvious_loop_is_only_of_the_full_model() -> None:
    with pytest.raises(ValueError, match="variant 'input'"):
        benchmark_training(ModelConfig(variant="input"))
