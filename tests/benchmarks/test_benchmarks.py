"""The benchmark compares two ways to the same numbers, and each benchmark runs."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import adapter, baselines, pretrain, read
from benchmarks.documents import make_batches, random_documents
from benchmarks.naive import SentenceLoop
from benchmarks.roofline import count_work
from benchmarks.train import TRUNCATION, TrainingOptions, make_model
from dntm.model.config import ModelConfig
from dntm.model.fast.window import windows
from dntm.training.config import EncoderConfig
from tests.model.tiny_base import write_base
from tests.reader.small import STORY, checkpoint
from tests.training.test_training import stories

ROOT = Path(__file__).parents[2]
SMALL = ModelConfig(
    vocabulary=80, entities=50, embedding_dim=8, hidden_dim=8, encoder_dim=8, context_dim=8
)


def test_the_naive_loop_gives_the_same_loss_and_gradients() -> None:
    model = make_model(SMALL, seed=3).double()
    naive = SentenceLoop(make_model(SMALL, seed=3).double()).double()
    _, batches = make_batches(SMALL, None, 4, seed=5)
    ours, theirs = model.initial_state(4), [naive.begin()] * 4

    for text in windows(batches[0], TRUNCATION):
        expected, theirs = naive.loss(text.sentences, [theirs[i].detach() for i in text.kept])
        window = model.plan(text.sentences, text.continues)
        nats, found = model.loss(window, ours.detach().select(text.kept))
        ours = found.after
        expected.backward()  # type: ignore[no-untyped-call]
        nats.backward()  # type: ignore[no-untyped-call]

        assert nats.item() == pytest.approx(expected.item(), rel=1e-10)

    torch.testing.assert_close(model.x.weight.grad, naive.model.x.weight.grad)
    W_hh = model.paper_parameters()["lstm.W_hh"]
    torch.testing.assert_close(W_hh.grad, naive.lstm.weight_hh_l0.grad)


def test_random_documents_have_the_statistics_of_ontogum() -> None:
    documents = random_documents(ModelConfig(), 300, seed=1)

    sentences = [s for document in documents for s in document]
    mentions = [[row for s in d for row in s if 3 <= row < 53] for d in documents]
    assert np.mean([len(d) for d in documents]) == pytest.approx(22.7, rel=0.1)
    assert np.mean([len(s) - 2 for s in sentences]) == pytest.approx(18, rel=0.1)
    assert np.mean([len(set(m)) for m in mentions]) == pytest.approx(14, rel=0.15)
    assert np.mean([len(m) / len(set(m)) for m in mentions]) == pytest.approx(3.3, rel=0.15)


def test_the_work_of_a_mention_is_that_of_the_equations() -> None:
    model = make_model(SMALL, seed=3)
    plain, mentioned = [1, 60, 61, 62, 63, 2], [1, 60, 3, 62, 63, 2]

    without = count_work(model, [[plain, plain]], TRUNCATION)
    work = count_work(model, [[mentioned, plain]], TRUNCATION)

    lstm, output = 12 * (4 * 8 * 16), 10 * 8 * (80 + 50)
    assert (without.tokens, without.flops) == (10, 2 * 3 * (lstm + output))
    left, right = 2, 3  # the words that the encoder reads on each side of the mention
    encoder = (left + right) * (4 * 8 * 16) + 2 * 8 * 8
    merged = 6 * 8 * 8 + 8 * 8 + 8 * 8
    assert work.flops - without.flops == 2 * (2 * encoder + 3 * merged)
    assert len(work.steps) - len(without.steps) == 2 * (left + right + 1)


def test_training_is_measured_from_the_command_line(tmp_path: Path) -> None:
    numbers = tmp_path / "numbers.json"
    sizes = [f"--model.{name}-dim=32" for name in ("embedding", "hidden", "encoder", "context")]
    options = [*sizes, "--model.vocabulary=80", "--batch=1", "--rounds=1", "--threads=1"]

    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.train", *options, f"--json={numbers}"],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    found = json.loads(numbers.read_text())
    assert f"ours             {found['tokens_per_second']:12,.0f} tokens/s" in done.stdout
    assert min(found["of_ideal"], found["speedup"], found["peak_memory_gb"]) > 0
    assert f"machine          {found['machine']}" in done.stdout


@pytest.mark.usefixtures("unchecked")
def test_the_other_benchmarks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "training_memory_gb", lambda *_: 0.0)
    (tmp_path / "tale.txt").write_text(f"{STORY}\n\n" * 20, encoding="utf-8")
    sizes = EncoderConfig(embedding_dim=4, encoder_dim=4)

    words = pretrain.measure(pretrain.PretrainingOptions(vocabulary=50, rounds=1, model=sizes))
    wider = replace(SMALL, embedding_dim=16, hidden_dim=16)
    costs = baselines.measure(TrainingOptions(model=wider, batch=1, rounds=1))
    model = checkpoint(tmp_path / "model")
    reading = read.measure(read.ReadingOptions(text=tmp_path / "tale.txt", model=model))
    monkeypatch.setattr(adapter, "memory_gb", lambda *_: 0.0)
    adapted = adapter.measure(
        adapter.AdapterOptions(
            core=str(write_base(tmp_path / "base")), dataset=stories(tmp_path, 8), rounds=1
        )
    )

    assert words["words_per_second"] > 0
    assert {cost.name: cost.candidates is not None for cost in costs}["D"]
    assert all(cost.trained > 0 and cost.scored > 0 for cost in costs)
    assert adapted["tokens"] > 0
    assert min(adapted["tokens_per_second"].values()) > 0
    assert reading["words"] == 20 * len(STORY.split())
