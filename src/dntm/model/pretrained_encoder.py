"""PretrainedEncoder: word embeddings and context encoder from a large corpus (Section 5.1).

Both are learned together on a sentence completion task and then handed to the language model: one
table of embeddings into its input and its output layer, the encoder as it is. The folder is a
checkpoint of its own kind (`model_type: dntm-encoder`), with the same three files.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from dntm.corpus.vocabulary import BOS, EOS, UNK, Vocabulary
from dntm.files import new_folder
from dntm.model.checkpoint import CONFIG, FORMAT_VERSION, VOCABULARY, WEIGHTS
from dntm.model.language_model import DynamicTextModel
from dntm.model.tensors import load_tensors, save_tensors

MODEL_TYPE = "dntm-encoder"


@dataclass(frozen=True)
class PretrainedEncoder:
    """What pretraining hands over."""

    vocabulary: Vocabulary
    x: Float[Tensor, "rows embedding_dim"]
    """Embeddings of the vocabulary's rows."""
    encoder: dict[str, Tensor]
    """The parameters of a ContextEncoder, by name."""
    share: Float[Tensor, " rows"]
    """How likely each row was to be drawn as a negative sample."""

    @property
    def log_share(self) -> Float[Tensor, " rows"]:
        """What added to x_hat . x makes log p(w | gap), up to a constant."""
        return log_share(self.share)

    @property
    def embedding_dim(self) -> int:
        """Size of the embeddings and of the context vectors compared with them."""
        return self.x.shape[1]

    @property
    def encoder_dim(self) -> int:
        """Size of each of the encoder's two LSTMs."""
        return self.encoder["forward_lstm.W_hh"].shape[1]

    def save(self, directory: Path) -> None:
        """Write the checkpoint; one that stood there before is replaced."""
        settings = {
            "model_type": MODEL_TYPE,
            "format_version": FORMAT_VERSION,
            "vocabulary": len(self.vocabulary),
            "entities": self.vocabulary.entities,
        }
        tensors = {"x": self.x, "share": self.share}
        tensors |= {f"encoder.{name}": value for name, value in self.encoder.items()}
        with new_folder(directory, overwrite=True) as folder:
            save_tensors(tensors, folder / WEIGHTS)
            (folder / CONFIG).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
            text = self.vocabulary.text()
            (folder / VOCABULARY).write_text(text, encoding="utf-8", newline="\n")

    @classmethod
    def load(cls, directory: Path) -> "PretrainedEncoder":
        """Read a checkpoint; ValueError where it is none."""
        path = directory / CONFIG
        try:
            settings: Any = json.loads(path.read_text(encoding="utf-8"))
            kind, version = settings["model_type"], settings["format_version"]
            entities = settings["entities"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is no pretraining checkpoint: {error}") from None
        if (kind, version) != (MODEL_TYPE, FORMAT_VERSION):
            raise ValueError(
                f"{path}: {kind!r} of version {version}, "
                f"expected {MODEL_TYPE!r} of version {FORMAT_VERSION}"
            )
        vocabulary = Vocabulary.load(directory / VOCABULARY, entities=entities)
        tensors = load_tensors(directory / WEIGHTS)
        if any(len(tensors.get(name, ())) != len(vocabulary) for name in ("x", "share")):
            raise ValueError(
                f"{directory / WEIGHTS}: expected embeddings x and share of {len(vocabulary)} rows"
            )
        x, share = tensors.pop("x"), tensors.pop("share")
        encoder = {n.removeprefix("encoder."): v for n, v in tensors.items()}
        return cls(vocabulary, x, encoder, share)

    @torch.no_grad()
    def hand_over(self, model: DynamicTextModel, vocabulary: Vocabulary) -> None:
        """Set a language model's embeddings, in and out, and its encoder.

        Entities, and words that pretraining had no row for, begin as <unk>; a row whose word its
        text never had is as it was drawn.
        """
        words = [self.vocabulary.row(word) for word in vocabulary.words]
        rows = [UNK, BOS, EOS, *[UNK] * vocabulary.entities, *words]
        table = self.x.index_select(0, torch.tensor(rows))
        for name, weight in (("input", model.x.weight), ("output", model.output.y.weight)):
            if weight.shape != table.shape:
                raise ValueError(
                    f"pretrained embeddings are {tuple(table.shape)}, but the model's {name} "
                    f"embeddings {tuple(weight.shape)}: expected the same size"
                )
            weight.copy_(table)
        if model.encoder is None:
            return
        expected = {name: tuple(p.shape) for name, p in model.encoder.named_parameters()}
        found = {name: tuple(value.shape) for name, value in self.encoder.items()}
        if expected != found:
            raise ValueError(f"the pretrained encoder is {found}, but the model's {expected}")
        model.encoder.load_state_dict(self.encoder)


def log_share(share: Float[Tensor, " rows"]) -> Float[Tensor, " rows"]:
    """The logarithm of shares; rows that were never drawn come after all others, but exist."""
    return (share + 1e-12).log()
