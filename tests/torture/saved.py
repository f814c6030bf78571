"""Damaged checkpoints, states, datasets, stores and settings: refused, or read without change."""

import dataclasses
import io
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load

import dntm
from dntm.cli.data import print_table_1
from dntm.cli.export import model_card
from dntm.corpus.dataset import SPLITS, Dataset
from dntm.corpus.token_store import TokenStore
from dntm.model.checkpoint import save_tensors
from dntm.model.language_model import DynamicTextModel
from dntm.model.pretrained_encoder import PretrainedEncoder
from dntm.settings import merged, read_yaml, to_yaml
from dntm.study.config import PRESETS, StudyConfig
from dntm.training.config import PretrainConfig, TrainConfig
from dntm.training.run_folder import RunFolder, Session
from dntm.training.state import TrainingState
from tests.torture.trying import Tally, damaged, edited_json


class Saved:
    """A dataset, a run on it and a pretraining (`kills`), and what comes of their files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run, self.dataset, self.pretraining = (
            folder / name for name in ("run", "dataset", "pretraining")
        )
        (folder / "study.yaml").write_text(to_yaml(PRESETS["quick"]))
        Session(folder / "machine.json", 1).note()
        latest = RunFolder(self.run).latest()
        assert latest is not None
        self.state = latest
        found = Dataset.open(self.dataset)
        self.documents = list(found.documents("test"))
        self.config = merged(
            TrainConfig(dataset=Path()), read_yaml(self.run / "config.yaml"), "config.yaml"
        ).for_vocabulary(found.vocabulary)

    def kinds(self) -> dict[str, tuple[list[Path], Callable[[], object]]]:
        """Files by kind, and what is made of them: the same where they are the same."""
        best, text = self.pretraining / "best", self.pretraining / "text"
        checkpoint = self.run / "best"
        return {
            "checkpoint": (sorted(checkpoint.iterdir()), self.scores),
            "training state": (sorted(self.state.iterdir()), self.restored),
            "dataset": (sorted(self.dataset.iterdir()), self.read),
            "pretrained encoder": (sorted(best.iterdir()), self.contexts),
            "text of pretraining": (sorted(text.iterdir()), self.stored),
            "settings": (
                [self.run / "config.yaml", self.pretraining / "config.yaml",
                 self.folder / "study.yaml"],
                self.settings,
            ),
            "results": (
                [self.run / "all_results.json", self.folder / "machine.json"], self.results
            ),
        }  # fmt: skip

    def scores(self) -> object:
        model = dntm.load(self.run)
        found = np.concatenate(list(model.score(self.documents)))
        assert np.isfinite(found).all()
        return found.tobytes()

    def restored(self) -> object:
        model = DynamicTextModel(self.config.model, torch.Generator().manual_seed(1))
        state = TrainingState.start(model, self.config.training, 1)
        RunFolder(self.run, writes=False).restore(state)
        return {name: value.numpy().tobytes() for name, value in state.tensors().items()}

    def read(self) -> object:
        found = Dataset.open(self.dataset).check_content()
        with redirect_stdout(io.StringIO()):
            print_table_1(found)
        return [document for split in SPLITS for document in found.documents(split)]

    def contexts(self) -> object:
        pretrained = PretrainedEncoder.load(self.pretraining / "best")
        found = pretrained.model.contexts([np.array([3, 4, 5])])
        assert bool(found.isfinite().all())
        return found.numpy().tobytes()

    def stored(self) -> object:
        store = TokenStore.open(self.pretraining / "text")
        stretches = np.concatenate((store.train, store.held_out))
        return sum(
            int(sum(store.sentence(n).sum() for n in range(first, end)))
            for first, end in stretches.tolist()
        )

    def settings(self) -> object:
        base = PretrainConfig(text=(), output_dir=Path())
        merged(self.config, read_yaml(self.run / "config.yaml"), "config.yaml")
        merged(base, read_yaml(self.pretraining / "config.yaml"), "config.yaml")
        return dataclasses.asdict(StudyConfig.from_yaml(self.folder / "study.yaml")) and None

    def results(self) -> object:
        RunFolder(self.run).read_results()
        model_card(self.run)
        Session(self.folder / "machine.json", 1)
        return None


GUARDED = ("checkpoint", "training state", "dataset", "pretrained encoder")
"""Kinds whose content is checked: damaged bytes that are taken must mean the same."""


def damaged_files(folder: Path, count: int, seed: int) -> Iterator[Tally]:
    """Every kind gets its share; `folder` is what `kills` left."""
    saved, rng = Saved(folder), random.Random(seed)
    kinds = saved.kinds()
    for kind, (files, work) in kinds.items():
        tally, expected = Tally(f"damaged {kind}"), work()
        for number in range(max(1, round(count / len(kinds)))):
            path = rng.choice(files)
            content = path.read_bytes()
            made, is_valid = _damage(path, content, rng)
            path.write_bytes(made)
            label = f"{kind} {number} of seed {seed}, {path.name}"
            found = tally.attempt(label, work)
            taken = found is not None
            if taken and kind in GUARDED and not is_valid:
                tally.expect(f"{label}: taken, but not the same", holds=found == expected)
            path.write_bytes(content)
        yield tally


def _damage(path: Path, content: bytes, rng: random.Random) -> tuple[bytes, bool]:
    """The damaged content, and whether its checksum is valid nevertheless."""
    if path.suffix == ".json" and rng.random() < 0.6:
        return edited_json(content, rng), False
    if path.suffix == ".safetensors" and rng.random() < 0.4:
        tensors = load(content)
        _edit(tensors, rng)
        save_tensors(tensors, path)
        return path.read_bytes(), True
    return damaged(content, rng), False


def _edit(tensors: dict[str, Any], rng: random.Random) -> None:
    name = rng.choice(list(tensors))
    value = tensors[name]
    changes = [value.float() * torch.nan, value.float() * torch.inf, value.long(), value.bool()]
    changes += [value.half(), value.double(), torch.zeros(0), torch.zeros(())]
    changes += [value.reshape(-1)[:-1].clone(), value.unsqueeze(0).clone()]
    kind = rng.randrange(len(changes) + 3)
    if kind < len(changes):
        tensors[name] = changes[kind]
    elif kind == len(changes):
        del tensors[name]
    elif kind == len(changes) + 1:
        tensors[rng.choice(("colour", "optimizer.7.step", "optimizer.x", "model."))] = value.clone()
    else:
        other = rng.choice(list(tensors))
        tensors[name], tensors[other] = tensors[other].clone(), value.clone()


def copied(made: Path, target: Path) -> Path:
    """Make a copy to damage; its settings name the paths of the copy."""
    shutil.copytree(made, target)
    for name in ("run", "pretraining"):
        settings = target / name / "config.yaml"
        settings.write_text(settings.read_text().replace(str(made), str(target)))
    return target
