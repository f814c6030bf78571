"""Frozen parts of a model: they stay unchanged while others are trained."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import dntm
from dntm.training.initial_weights import initial_model, with_source_counts
from dntm.training.language_modeling import WindowLoss
from dntm.training.run_folder import RunFolder
from tests.model.small import build
from tests.training.test_training import config, dataset, few  # noqa: F401 (fixtures)

# ruff: noqa: F811 (pytest hands fixtures over by their names)


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


def test_frozen_words_keep_the_counts_of_their_own_text(few: Path, tmp_path: Path) -> None:
    settings = config(few, tmp_path / "d")
    dntm.train(settings)
    words = dntm.load(tmp_path / "d").vocabulary
    others = replace(words, counts=[7] * len(words))
    again = replace(settings, start_from=tmp_path / "d")
    frozen = replace(again, training=replace(again.training, freeze=("x.weight", "core")))

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

    found, nats, _ = loss(window, model.initial_state(1), torch.Generator())
    found.backward()

    assert found.item() == pytest.approx(nats.item())
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
