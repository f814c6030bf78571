"""The benchmark compares two ways to the same numbers."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from dntm.benchmark.machine import machine_name
from dntm.benchmark.roofline import Machine, count_work, read_rate
from dntm.benchmark.train import (
    TRUNCATION,
    benchmark_training,
    make_batches,
    make_model,
    random_document,
)
from dntm.cli.main import main
from dntm.model.config import ModelConfig
from dntm.model.fast.window import windows
from dntm.model.reference import SentenceLoop

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


def test_the_naive_loop_gives_the_same_loss_and_gradients() -> None:
    model, naive = (
        make_model(SMALL, seed=3).double(),
        SentenceLoop(make_model(SMALL, seed=3).double()),
    )
    naive = naive.double()
    _, batches = make_batches(SMALL, None, 4, seed=5)
    ours, theirs = model.initial_state(4), [naive.reference.begin()] * 4

    for text in windows(batches[0], TRUNCATION):
        expected, theirs = naive.loss(text.sentences, [theirs[i].detach() for i in text.kept])
        window = model.plan(text.sentences, text.continues)
        nats, _, ours = model.loss(window, ours.detach().select(text.kept))
        expected.backward()  # type: ignore[no-untyped-call]
        nats.backward()  # type: ignore[no-untyped-call]

        assert nats.item() == pytest.approx(expected.item(), rel=1e-10)

    torch.testing.assert_close(model.x.weight.grad, naive.model.x.weight.grad)
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

    work = count_work(make_model(SMALL, seed=3), [[sentence, sentence]], TRUNCATION)

    lstm, output = 8 * (4 * 8 * 16), 6 * 8 * (80 + 50)
    assert (work.tokens, work.flops) == (6, 2 * 3 * (lstm + output))
    assert work.steps == (((4 * 8, 8), 1),) * 2 * 8


def test_the_encoders_work_ends_at_the_mentions_it_has_to_reach() -> None:
    model = make_model(SMALL, seed=3)
    plain, mentioned = [1, 60, 61, 62, 63, 2], [1, 60, 3, 62, 63, 2]

    without = count_work(model, [[plain, plain]], TRUNCATION)
    work = count_work(model, [[mentioned, plain]], TRUNCATION)

    left, right = 2, 3
    encoder = (left + right) * (4 * 8 * 16) + 2 * 8 * 8
    merged = 6 * 8 * 8 + 8 * 8 + 8 * 8
    assert work.flops - without.flops == 2 * (2 * encoder + 3 * merged)
    assert len(work.steps) - len(without.steps) == 2 * (left + right + 1)


def test_the_roofline_is_arithmetic_where_weights_are_read_at_once() -> None:
    work = count_work(make_model(SMALL, seed=3), [[[1, 60, 3, 2], [1, 3, 2]]], TRUNCATION)
    shapes = {shape for shape, _ in work.steps}

    at_once = Machine(name="", gflops=1, read_rates=dict.fromkeys(shapes, 1e9))
    slow = Machine(name="", gflops=1, read_rates=dict.fromkeys(shapes, 1e-3))

    assert at_once.ideal_seconds(work) == at_once.arithmetic_seconds(work) == work.flops / 1e9
    assert slow.weights_seconds(work) == sum(4 * a * b / 1e6 for (a, b), _ in work.steps)
    low, high = slow.weights_seconds(work), slow.weights_seconds(work) + work.flops / 1e9
    assert low < slow.ideal_seconds(work) < high


def test_the_machine_is_measured_and_named() -> None:
    assert read_rate((256, 64), repeats=1) > 0
    assert machine_name()


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
    assert f"machine          {machine_name()}" in printed
    assert f"at {numbers['weights_gb_per_second']:,.1f} GB/s" in printed
    assert numbers["text"] == str(dataset)
    assert numbers["machine"] == machine_name()


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


def test_the_naive_loop_is_only_of_the_full_model() -> None:
    with pytest.raises(ValueError, match="variant 'input'"):
        benchmark_training(ModelConfig(variant="input"))
