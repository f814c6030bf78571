"""A tiny model learns, and a resumed run ends with the bits of one that was never interrupted."""

import json
import math
import os
import random
import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dntm
from dntm.corpus.dataset_builder import BuildConfig, ReadConfig, build_dataset
from dntm.corpus.vectors import WordVectors
from dntm.model.config import Variant
from dntm.model.context_encoder import ContextEncoder
from dntm.model.pretrained_encoder import PretrainedEncoder
from dntm.model.sentence_completion import SentenceCompletion
from dntm.training import run_folder
from dntm.training.initial_weights import initial_model, with_source_counts
from dntm.training.language_modeling import WindowLoss, train_run
from dntm.training.processes import Interrupted
from dntm.training.run_folder import RunFolder
from tests.model.small import build
from tests.study.small_study import story
from tests.training.small_pretraining import interrupt_often, outcome

SIZES: dict[str, Any] = dict.fromkeys(("embedding_dim", "hidden_dim", "encoder_dim"), 12)
VARIANTS: tuple[Variant, ...] = ("baseline", "both")


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough to learn from."""
    return stories(tmp_path_factory.mktemp("stories"), 120)


@pytest.fixture(scope="session")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough for a run to have batches, validations and results."""
    return stories(tmp_path_factory.mktemp("few"), 30)


def stories(folder: Path, count: int) -> Path:
    rng = random.Random(5)
    lines = [json.dumps({"doc_key": f"d{i}", **story(rng)}) for i in range(count)]
    (folder / "stories.jsonl").write_text("\n".join(lines) + "\n")
    target = folder / "dataset"
    settings = BuildConfig(max_entities=2, keep_single=True)
    build_dataset(str(folder / "stories.jsonl"), target, ReadConfig(), settings)
    return target


def config(dataset: Path, run: Path, variant: Variant = "both") -> dntm.TrainConfig:
    return dntm.TrainConfig(
        dataset=dataset,
        output_dir=run,
        model=dntm.ModelConfig(variant=variant, dropout_hidden=0.1, context_dim=12, **SIZES),
        training=dntm.Recipe(
            epochs=3, truncation=3, learning_rate=0.02, average=0.9, schedule="cosine"
        ),
    )


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_model_learns_all_that_a_sentence_tells(
    dataset: Path, tmp_path: Path, variant: Variant
) -> None:
    # Who comes next (of two) and what he does (of three things) is open, the rest is not.
    without_memory = math.exp((math.log(2) + math.log(3)) / 5)
    longer = dntm.Recipe(epochs=12, learning_rate=0.02, schedule="cosine")

    results = dntm.train(replace(config(dataset, tmp_path, variant), training=longer))

    perplexity = results["splits"]["dev"]["all"]["perplexity"]
    assert perplexity < 1.2 * without_memory


def test_results_are_those_of_the_best_weights_and_the_test_split_is_never_read(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    documents = dntm.Dataset.documents

    def noted(self: dntm.Dataset, split: str) -> Iterator[dntm.AnonymizedDocument]:
        opened.append(split)
        return documents(self, split)

    monkeypatch.setattr(dntm.Dataset, "documents", noted)

    results = dntm.train(config(few, tmp_path / "run"))

    scores = dntm.load(tmp_path / "run").score(dntm.Dataset.open(few).documents("dev"))
    nats = -sum(float(values.sum()) for values in scores)
    assert nats == pytest.approx(results["splits"]["dev"]["all"]["nats"], rel=1e-6)
    assert set(opened) == {"train", "dev"}
    assert list(results["splits"]) == ["dev"]


@pytest.mark.usefixtures("unchecked")
def test_a_run_stopped_at_any_batch_resumes_to_the_same_bits(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The folder's name is part of the settings, so both runs need the same one.
    run = tmp_path / "run"
    dntm.train(config(few, run))
    expected = outcome(run)
    run.rename(tmp_path / "whole")
    monkeypatch.setattr(run_folder, "CHECKPOINT_SECONDS", 0.0)

    resumes = interrupt_often(lambda resume: train_run(config(few, run), resume=resume), 5)

    assert resumes > 3
    assert outcome(run) == expected


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_the_state_between_two_batches(
    few: Path, tmp_path: Path, number: signal.Signals
) -> None:
    run = train_run(config(few, tmp_path / "run"))
    next(run)
    os.kill(os.getpid(), number)

    with pytest.raises(Interrupted):
        list(run)

    assert RunFolder(tmp_path / "run").latest() is not None
    assert dntm.train(config(few, tmp_path / "run"), resume=True)["splits"]


def test_a_folder_is_never_used_twice_by_accident(few: Path, tmp_path: Path) -> None:
    settings = config(few, tmp_path / "run")
    first = train_run(settings)
    next(first)

    with pytest.raises(ValueError, match="in use by another process"):
        next(train_run(settings, resume=True))
    first.close()
    with pytest.raises(ValueError, match="holds a run already: pass --resume"):
        next(train_run(settings))
    next(train_run(settings, resume=True))


@pytest.mark.parametrize("learning_rate", [1e5, 1e30])
def test_a_run_that_diverges_says_so_and_saves_nothing_of_it(
    few: Path, tmp_path: Path, learning_rate: float
) -> None:
    settings = config(few, tmp_path / "run")
    wild = replace(settings.training, learning_rate=learning_rate, clip=1e30, average=0.0)
    run = replace(settings, training=replace(wild, epochs=20))

    for resume in (False, True):
        with pytest.raises(ValueError, match=r"diverged after \d+ updates.*smaller learning rate"):
            dntm.train(run, resume=resume)

    assert RunFolder(tmp_path / "run").latest() is None
    for metrics in tmp_path.glob("run/metrics.jsonl"):
        assert not {"NaN", "Infinity"} & set(re.findall(r"\w+", metrics.read_text()))


@pytest.mark.parametrize("freeze", [True, False])
def test_parameter_counts_tell_what_was_trained(few: Path, tmp_path: Path, *, freeze: bool) -> None:
    settings = config(few, tmp_path / "run")
    vocabulary = dntm.Dataset.open(few).vocabulary
    model = initial_model(settings.for_vocabulary(vocabulary), vocabulary)
    assert model.memory.encoder is not None
    pretrained = SentenceCompletion(len(vocabulary), ContextEncoder(12, 12, 12))
    PretrainedEncoder(vocabulary, pretrained).save(tmp_path / "encoder")
    training = replace(settings.training, epochs=1, freeze_encoder=freeze)

    counts = dntm.train(replace(settings, pretrained=tmp_path / "encoder", training=training))[
        "parameters"
    ]

    fixed = sum(p.numel() for p in model.memory.encoder.parameters()) if freeze else 0
    assert counts["finetuned"] == counts["total"] - fixed


@pytest.mark.parametrize("tied", [False, True])
def test_embeddings_start_from_word_vectors(dataset: Path, tmp_path: Path, tied: bool) -> None:
    vocabulary = dntm.Dataset.open(dataset).vocabulary
    words, rng = vocabulary.words[:4], np.random.default_rng(1)
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{w} {' '.join(map(str, rng.standard_normal(5)))}\n" for w in words))
    settings = config(dataset, tmp_path / "run")
    settings = replace(settings, vectors=path, model=replace(settings.model, tied=tied))

    model = initial_model(settings.for_vocabulary(vocabulary), vocabulary)

    rows, given = WordVectors.read(path).of(vocabulary)
    unit = torch.nn.functional.normalize(torch.from_numpy(given - given.mean(0)), dim=1)
    for table in (model.x.weight, model.output.weight):
        x = torch.nn.functional.normalize(table[torch.from_numpy(rows)], dim=1)
        torch.testing.assert_close(x @ x.T, unit @ unit.T)
    lengths = model.output.weight.norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths))


@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_word_embeddings_are_frozen_while_those_of_entities_are_trained(
    few: Path, tmp_path: Path, rate: float
) -> None:
    settings = config(few, tmp_path / "run")
    model = replace(settings.model, tied=False)
    training = replace(settings.training, freeze=("x.words",), embedding_rate=rate)
    training = replace(training, weight_decay=0.1)
    settings = replace(settings, model=model, training=training)
    vocabulary = dntm.Dataset.open(few).vocabulary
    before = initial_model(settings.for_vocabulary(vocabulary), vocabulary).x.weight

    dntm.train(settings)

    after = dntm.load(tmp_path / "run").model.x.weight
    first = 3 + vocabulary.entities
    assert after[first:].equal(before[first:])
    assert after[:3].equal(before[:3])
    assert not after[3:first].equal(before[3:first])


def test_a_pointer_is_trained_while_the_rest_is_frozen(few: Path, tmp_path: Path) -> None:
    settings = config(few, tmp_path / "d")
    dntm.train(settings)
    parts = ("x", "core", "memory", "output", "terms.dynamic-output")
    with_pointer = replace(
        settings,
        output_dir=tmp_path / "pointer",
        start_from=tmp_path / "d",
        model=replace(settings.model, extensions=("pointer",)),
        training=replace(settings.training, freeze=parts),
    )

    results = dntm.train(with_pointer)

    before = dict(dntm.load(tmp_path / "d").model.named_parameters())
    after = dict(dntm.load(tmp_path / "pointer").model.named_parameters())
    learned = {name: p for name, p in after.items() if name not in before}
    assert all(after[name].equal(value) for name, value in before.items())
    assert all(name.startswith("terms.pointer.") for name in learned)
    assert results["parameters"]["finetuned"] == sum(p.numel() for p in learned.values())
    written = (tmp_path / "pointer" / "config.yaml").read_text(encoding="utf-8")
    assert all(f"- {part}\n" in written for part in parts)
    plain = RunFolder(tmp_path / "d").read_results()["splits"]["dev"]["all"]["perplexity"]
    assert results["splits"]["dev"]["all"]["perplexity"] < plain


@pytest.mark.parametrize("words_part", ["x.weight", "x.words"])
def test_frozen_words_keep_the_counts_of_their_own_text(
    few: Path, tmp_path: Path, words_part: str
) -> None:
    settings = config(few, tmp_path / "d")
    dntm.train(settings)
    words = dntm.load(tmp_path / "d").vocabulary
    others = replace(words, counts=[7] * len(words))
    again = replace(settings, start_from=tmp_path / "d")
    frozen = replace(again, training=replace(again.training, freeze=(words_part, "core")))

    def counts(run: dntm.TrainConfig) -> Sequence[int] | None:
        model = initial_model(run.for_vocabulary(words), words)
        return with_source_counts(run, model, others).counts

    assert counts(frozen) == words.counts
    assert counts(settings) == counts(again) == others.counts


@pytest.mark.parametrize("sentences", [None, [[1, 9, 8, 2]]])
def test_a_window_without_trained_parts_has_a_loss_without_gradients(
    sentences: list[list[int]] | None,
) -> None:
    model = build("both", "gru")
    model.requires_grad_(requires_grad=False)
    assert model.memory.merging is not None
    model.memory.merging.requires_grad_()
    window = None if sentences is None else model.plan([sentences])
    loss = WindowLoss(model, dntm.Recipe())

    found, _ = loss(window, model.initial_state(1), torch.Generator())
    found.backward()

    assert (found.item() > 0) == (window is not None)
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        (("x", "decoder"), "freeze is 'decoder', which this model does not have: expected core"),
        (("x", "core", "memory", "output", "terms"), "nothing is left to train"),
    ],
)
def test_freezing_an_unknown_part_or_everything_is_an_error(
    few: Path, tmp_path: Path, parts: tuple[str, ...], complaint: str
) -> None:
    settings = config(few, tmp_path / "run")
    training = replace(settings.training, freeze=parts)

    with pytest.raises(ValueError, match=complaint):
        dntm.train(replace(settings, training=training))
