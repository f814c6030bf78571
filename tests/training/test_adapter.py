"""Training on a pretrained core: what belongs to entities learns; a resumed run has equal bits."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from dntm.cli.main import main
from dntm.evaluation.records import Records
from dntm.model.base_model import load_base
from dntm.model.checkpoint import WEIGHTS, load_tensors
from dntm.model.config import ModelConfig
from dntm.study.config import RECIPES
from dntm.training import run_folder
from dntm.training.config import TrainConfig
from dntm.training.language_modeling import train_run
from tests.model.tiny_base import write_base
from tests.training.small_pretraining import interrupt_often
from tests.training.test_training import stories

pytest.importorskip("transformers")


@pytest.fixture(scope="module", name="base")
def _base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module", name="dataset")
def _dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stories(tmp_path_factory.mktemp("stories"), 30)


@pytest.fixture(autouse=True)
def _fresh_base() -> Iterator[None]:
    yield
    load_base.cache_clear()


def settings(base: Path, dataset: Path, run: Path) -> TrainConfig:
    model = ModelConfig(core=str(base), context_dim=8, extensions=("salience",))
    training = replace(RECIPES["adapter"][1], learning_rate=0.02)
    return TrainConfig(dataset=dataset, output_dir=run, model=model, training=training)


def test_an_adapter_learns_and_resumes_to_the_same_bits(
    base: Path, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    progress = [p for p in train_run(settings(base, dataset, whole)) if p.tokens]
    monkeypatch.setattr(run_folder, "CHECKPOINT_SECONDS", 0.0)
    config = settings(base, dataset, parts)

    resumes = interrupt_often(lambda resume: train_run(config, resume=resume), 12)

    losses = [p.loss / p.tokens for p in progress]
    assert torch.get_float32_matmul_precision() == "highest"
    assert sum(losses[-5:]) < sum(losses[:5]) - 1
    assert resumes > 1
    for file in ("best/model.safetensors", "best/spelling.json"):
        assert (whole / file).read_bytes() == (parts / file).read_bytes()
    fitted = (whole / "best" / "spelling.json").read_bytes()
    (whole / "best" / "spelling.json").unlink()
    main(["spelling", str(whole), "--dataset", str(dataset)])
    assert (whole / "best" / "spelling.json").read_bytes() == fitted
    assert not (whole / "best" / "vocab.txt").exists()
    document = {"sentences": [["It", "ate", "it"]], "clusters": [[[0, 0], [2, 2]]]}
    (tmp_path / "a.jsonl").write_text(json.dumps(document))
    main(["evaluate", str(whole), str(tmp_path / "a.jsonl"), "--output-dir", str(tmp_path)])
    assert len(Records.read(tmp_path / "records-dev-whole-a.csv").token) == 3


def test_both_layers_start_from_a_memory_that_was_learned_with_frozen_inputs(
    base: Path, dataset: Path, tmp_path: Path
) -> None:
    first = settings(base, dataset, tmp_path / "memory")
    first = replace(
        first,
        model=replace(first.model, variant="output"),
        training=replace(first.training, freeze=("x",)),
    )
    list(train_run(first))

    second = replace(settings(base, dataset, tmp_path / "both"), start_from=first.output_dir)
    second = replace(second, training=replace(second.training, learning_rate=1e-12))
    list(train_run(second))

    weights, before = (
        load_tensors(run / "best" / WEIGHTS) for run in (second.output_dir, first.output_dir)
    )
    assert all(weights[name].allclose(value, atol=1e-6) for name, value in before.items())
    assert float(weights["terms.dynamic-output.W_dy"].abs().max()) > 0
    assert float(weights["x.W_dx"].abs().max()) < 1e-6
