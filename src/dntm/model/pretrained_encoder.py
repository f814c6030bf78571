"""PretrainedEncoder: word embeddings and context encoder from a large corpus (Section 5.1).

Both are learned on a sentence completion task and then loaded into the language model: one table
of embeddings into its input and output layers, the encoder unchanged. The folder is a checkpoint
of its own kind (`model_type: dntm-encoder`) with the same three files. Embeddings may also start
from word vectors (`begin_with`), before pretraining or instead of it.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dntm.corpus.vectors import WordVectors, resized
from dntm.corpus.vocabulary import BOS, EOS, SPECIALS, UNK, Vocabulary, entity_rows
from dntm.files import new_folder
from dntm.model.checkpoint import (
    CONFIG,
    ENCODER_TYPE,
    VOCABULARY,
    WEIGHTS,
    check_shapes,
    check_weights,
    load_tensors,
    write_files,
)
from dntm.model.config import Merging
from dntm.model.context_encoder import ContextEncoder
from dntm.model.extensions.naming import MENTIONS, naming_term
from dntm.model.extensions.word_attention import WordAttention
from dntm.model.language_model import DynamicTextModel
from dntm.model.merging import merging_function
from dntm.settings import read_json

NAMING = ("W_dx", "b", "naming.s", "naming.t")
"""Further parameters, if gaps were named."""
FORMAT_VERSION = 3
LENGTH = 0.3
"""Length of an input row that starts from a word vector, per square root of its width."""


@dataclass(frozen=True)
class PretrainedEncoder:
    """The result of pretraining."""

    vocabulary: Vocabulary
    x: Float[Tensor, "vocabulary embedding_dim"]
    """Embeddings of the vocabulary's rows."""
    encoder: dict[str, Tensor]
    """The parameters of a ContextEncoder, by name."""
    share: Float[Tensor, " vocabulary"]
    """The probability of each row as a negative sample."""
    naming: dict[str, Tensor] = field(default_factory=dict)
    """If gaps were named: the initial values of x_e = W_dx d + b and s_n (`W_dx`, `b`, `naming.*`),
    and the parameters of the merging function (`merging.*`)."""
    merging: Merging | None = None
    """How the contexts of a word were merged; None if each was named alone."""

    @property
    def log_share(self) -> Float[Tensor, " vocabulary"]:
        """Added to x_hat . x it gives log p(w | gap), up to a constant."""
        return torch.zeros_like(self.share) if self.naming else log_share(self.share)

    @property
    def embedding_dim(self) -> int:
        """Size of the embeddings."""
        return self.x.shape[1]

    @property
    def attention(self) -> bool:
        """Whether the encoder has word attention."""
        return "w" in self.encoder

    @property
    def context_dim(self) -> int:
        """Size of the context vectors d'."""
        return self.encoder["W_hd"].shape[0]

    @property
    def encoder_dim(self) -> int:
        """Size of each of the encoder's two LSTMs."""
        return self.encoder["forward_lstm.W_hh"].shape[1]

    def save(self, directory: Path) -> None:
        """Write the checkpoint; an existing one is replaced."""
        settings = {
            "model_type": ENCODER_TYPE,
            "format_version": FORMAT_VERSION,
            "vocabulary": len(self.vocabulary),
            "entities": self.vocabulary.entities,
            "merging": self.merging,
        }
        tensors = {"x": self.x, "share": self.share}
        tensors |= {f"encoder.{name}": value for name, value in self.encoder.items()} | self.naming
        check_weights(tensors, directory / WEIGHTS)
        with new_folder(directory, overwrite=True) as folder:
            write_files(tensors, settings, self.vocabulary, folder)

    @classmethod
    def load(cls, directory: Path) -> "PretrainedEncoder":
        """Read a checkpoint; ValueError if it is damaged or of another kind."""
        path = directory / CONFIG
        try:
            settings = read_json(path)
            kind, version = settings["model_type"], settings["format_version"]
            entities, merging = settings["entities"], settings["merging"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is not a pretraining checkpoint: {error}") from None
        if kind != ENCODER_TYPE or version != FORMAT_VERSION:
            raise ValueError(
                f"{path}: {kind!r:.40} of version {version!r:.40}, "
                f"expected {ENCODER_TYPE!r} of version {FORMAT_VERSION}"
            )
        if merging is not None and merging not in get_args(Merging):
            raise ValueError(
                f"{path}: merging {merging!r:.40}, expected one of {', '.join(get_args(Merging))}"
            )
        if type(entities) is not int or entities < 0:
            raise ValueError(f"{path}: entities {entities!r:.40}, expected a number of rows")
        vocabulary = Vocabulary.load(directory / VOCABULARY, entities=entities)
        tensors = load_tensors(directory / WEIGHTS)
        check_weights(tensors, directory / WEIGHTS)
        _check(tensors, len(vocabulary), merging, directory / WEIGHTS)
        x, share = tensors.pop("x"), tensors.pop("share")
        encoder = {
            n.removeprefix("encoder."): tensors.pop(n)
            for n in [*tensors]
            if n.startswith("encoder.")
        }
        return cls(vocabulary, x, encoder, share, tensors, merging)

    @torch.no_grad()
    def load_into(self, model: DynamicTextModel, vocabulary: Vocabulary) -> None:
        """Set a language model's input and output embeddings and its encoder.

        Entities and words without a row in pretraining start as <unk>. If gaps were named, x_e
        starts as W_dx d + b, with the pretrained merging function if the model uses the same one,
        and output embeddings (y_e included) start with the same cosines.
        """
        words = [self.vocabulary.row(word) for word in vocabulary.words]
        rows = [UNK, BOS, EOS, *[UNK] * vocabulary.entities, *words]
        table = self.x.index_select(0, torch.tensor(rows))
        x, y = table, table
        if self.naming:
            x = table.clone()
            x[entity_rows(vocabulary.entities)] = self.naming["b"]
            y, W_dy = self._outputs(x, model)
            if model.x.W_dx is not None:
                _set(model.x.W_dx, self.naming["W_dx"], "W_dx")
            if model.W_dy is not None:
                _set(model.W_dy, W_dy, "W_dy")
            if (naming := naming_term(model.terms)) is not None:
                naming.s.copy_(self.naming["naming.s"])
                naming.t.copy_(self.naming["naming.t"])
            if model.memory.merging is not None and self.merging == model.config.merging:
                for name, parameter in model.memory.merging.named_parameters():
                    _set(parameter, self.naming[f"merging.{name}"], f"merging.{name}")
        for name, weight, table in (
            ("input", model.x.weight, x),
            ("output", model.output.weight, y),
        ):
            if weight.shape != table.shape:
                raise ValueError(
                    f"pretrained embeddings are {tuple(table.shape)}, but the model's {name} "
                    f"embeddings {tuple(weight.shape)}: expected the same size"
                )
            weight.copy_(table)
        encoder = model.memory.encoder
        if encoder is None:
            return
        expected = {name: tuple(p.shape) for name, p in encoder.named_parameters()}
        weights = self.encoder
        if self.attention:
            own = torch.tensor(words) - len(SPECIALS)
            w = weights["w"].index_select(0, own.clamp(min=0)).masked_fill(own < 0, 0)
            weights = weights | {"w": w}
        found = {name: tuple(value.shape) for name, value in weights.items()}
        if expected != found:
            raise ValueError(f"the pretrained encoder is {found}, but the model's {expected}")
        encoder.load_state_dict(weights)

    def _outputs(
        self, x: Float[Tensor, "rows embedding_dim"], model: DynamicTextModel
    ) -> tuple[Float[Tensor, "rows hidden_dim"], Float[Tensor, "hidden_dim context_dim"]]:
        """The initial y and W_dy: the cosines of x and W_dx, and lengths of about 1.

        Logits then start small, and an entity is predicted where the word that it resembles would
        be. A tied table is the input's.
        """
        W_dx, lengths = self.naming["W_dx"], x.norm(dim=1, keepdim=True)
        if model.output.weight is model.x.weight:
            return x, W_dx
        y = x / lengths.clamp(min=1e-12)
        entities = entity_rows(model.config.entities)
        y[entities] = x[entities] / lengths.mean()
        both = torch.cat((y, W_dx.t() / lengths.mean())).numpy()
        wide = torch.from_numpy(resized(both, model.config.hidden_dim))
        return wide[: len(y)], wide[len(y) :].t()


def _check(tensors: dict[str, Tensor], rows: int, merging: Merging | None, path: Path) -> None:
    """ValueError if the tensors are not those of embeddings and an encoder over them."""
    x, W_hd = (tensors.get(name, torch.empty(0)) for name in ("x", "encoder.W_hd"))
    if x.dim() != 2 or W_hd.dim() != 2:
        raise ValueError(f"{path}: expected matrices x and encoder.W_hd")
    embedding_dim, (context_dim, width) = x.shape[1], W_hd.shape
    with torch.device("meta"):
        encoder = ContextEncoder(embedding_dim, width // 2, context_dim)
        if "encoder.w" in tensors:
            sizes = (embedding_dim, (width - embedding_dim) // 2, context_dim)
            encoder = WordAttention(*sizes, rows - len(SPECIALS), len(SPECIALS))
        expected = {f"encoder.{name}": p.detach() for name, p in encoder.named_parameters()}
        expected |= {"x": torch.empty(rows, embedding_dim), "share": torch.empty(rows)}
        if merging is not None or tensors.keys() & set(NAMING):
            shapes = ((embedding_dim, context_dim), (embedding_dim,), (), (MENTIONS,))
            expected |= {n: torch.empty(s) for n, s in zip(NAMING, shapes, strict=True)}
        if merging is not None:
            function = merging_function(merging, context_dim)
            expected |= {f"merging.{name}": p.detach() for name, p in function.named_parameters()}
    check_shapes(tensors, expected, path)


def _set(parameter: Tensor, value: Tensor, name: str) -> None:
    if parameter.shape != value.shape:
        raise ValueError(
            f"the pretrained {name} is {tuple(value.shape)}, but the model's "
            f"{tuple(parameter.shape)}: expected the same size"
        )
    parameter.copy_(value)


def log_share(share: Float[Tensor, " vocabulary"]) -> Float[Tensor, " vocabulary"]:
    """The log of the shares; rows that were never drawn rank last, with a finite value."""
    return (share + 1e-12).log()


@torch.no_grad()
def begin_with(
    x: Float[Tensor, "rows dim"],
    vectors: WordVectors,
    vocabulary: Vocabulary,
    *,
    length: float | None = None,
) -> None:
    """Initialize the rows of words that have a vector with it, in the table's width.

    The mean of the vectors, which they all share, is subtracted. All rows get the same length, so
    that only cosines matter. Words without a vector and special tokens get the same random row in
    every table of these words, so that models trained apart can be joined.
    """
    rows, found = vectors.of(vocabulary)
    if not len(rows):
        raise ValueError("the word vectors have no word of the vocabulary")
    entities = entity_rows(vocabulary.entities)
    others = torch.cat((torch.arange(entities.start), torch.arange(entities.stop, len(x))))
    drawn = torch.randn(len(others), x.shape[1], generator=torch.Generator().manual_seed(0))
    x.index_copy_(0, others.to(x.device), drawn.to(x))
    begun = torch.from_numpy(resized(found - found.mean(0), x.shape[1])).to(x)
    x.index_copy_(0, torch.from_numpy(rows).to(x.device), begun)
    x.copy_((length or LENGTH * x.shape[1] ** 0.5) * nn.functional.normalize(x, dim=1))
