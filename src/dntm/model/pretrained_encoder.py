"""PretrainedEncoder: word embeddings and context encoder from a large corpus (Section 5.1).

Both are learned on a sentence completion task and then loaded into the language model: one table
of embeddings into its input and output layers, the encoder unchanged. The folder is a checkpoint
of its own kind (`model_type: dntm-encoder`) with the same three files. Embeddings may also start
from word vectors (`begin_with`), before pretraining or instead of it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dntm.corpus.vectors import WordVectors, resized
from dntm.corpus.vocabulary import BOS, EOS, SPECIALS, UNK, Vocabulary, entity_rows
from dntm.files import new_folder
from dntm.model import checkpoint
from dntm.model.config import Merging
from dntm.model.extensions.naming import naming_term
from dntm.model.extensions.word_attention import encoder_of
from dntm.model.language_model import DynamicTextModel
from dntm.model.sentence_completion import GapNaming, SentenceCompletion
from dntm.settings import read_json, typed

FORMAT_VERSION = 3
LENGTH = 0.3
"""Length of an input row that starts from a word vector, per square root of its width."""


@dataclass(frozen=True)
class PretrainedEncoder:
    """The result of pretraining."""

    vocabulary: Vocabulary
    model: SentenceCompletion

    @property
    def sizes(self) -> dict[str, Any]:
        """The sizes of a language model that starts from this encoder."""
        encoder = self.model.encoder
        return {
            "embedding_dim": self.model.x.shape[1],
            "hidden_dim": self.model.x.shape[1],
            "encoder_dim": encoder.forward_lstm.W_hh.shape[1],
            "context_dim": encoder.W_hd.shape[0],
        }

    def save(self, directory: Path) -> None:
        """Write the checkpoint; an existing one is replaced."""
        settings = {
            "model_type": checkpoint.ENCODER_TYPE,
            "format_version": FORMAT_VERSION,
            "vocabulary": len(self.vocabulary),
            "entities": self.vocabulary.entities,
            "merging": self.model.merges,
        }
        tensors = self.model.state_dict()
        checkpoint.check_weights(tensors, directory / checkpoint.WEIGHTS)
        with new_folder(directory, overwrite=True) as folder:
            checkpoint.write_files(tensors, settings, self.vocabulary, folder)

    @classmethod
    def load(cls, directory: Path) -> "PretrainedEncoder":
        """Read a checkpoint; ValueError if it is damaged or of another kind."""
        path = directory / checkpoint.CONFIG
        try:
            settings = read_json(path)
            kind, version = settings["model_type"], settings["format_version"]
            merging = typed(Merging | None, settings["merging"], "merging")
            entities = typed(int, settings["entities"], "entities")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is not a pretraining checkpoint: {error}") from None
        if kind != checkpoint.ENCODER_TYPE or version != FORMAT_VERSION:
            raise ValueError(
                f"{path}: {kind!r:.40} of version {version!r:.40}, "
                f"expected {checkpoint.ENCODER_TYPE!r} of version {FORMAT_VERSION}"
            )
        vocabulary = Vocabulary.load(directory / checkpoint.VOCABULARY, entities=entities)
        tensors = checkpoint.load_tensors(directory / checkpoint.WEIGHTS)
        checkpoint.check_weights(tensors, directory / checkpoint.WEIGHTS)
        model = _model_of(tensors, len(vocabulary), merging, directory / checkpoint.WEIGHTS)
        return cls(vocabulary, model.requires_grad_(requires_grad=False))

    @torch.no_grad()
    def load_into(self, model: DynamicTextModel, vocabulary: Vocabulary) -> None:
        """Set a language model's input and output embeddings and its encoder.

        Entities and words without a row in pretraining start as <unk>. If gaps were named, x_e
        starts as W_dx d + b, with the pretrained merging function if the model uses the same one,
        and output embeddings (y_e included) start with the same cosines.
        """
        learned, tied = self.model, model.output.weight is model.x.weight
        words = [self.vocabulary.row(word) for word in vocabulary.words]
        rows = [UNK, BOS, EOS, *[UNK] * vocabulary.entities, *words]
        x = y = learned.x.index_select(0, torch.tensor(rows))
        if isinstance(learned, GapNaming):
            x = x.clone()
            x[entity_rows(vocabulary.entities)] = learned.b
            W_dx = learned.W_dx.detach()
            y, W_dy = (x, W_dx) if tied else _outputs(x, W_dx, model)
            if model.x.W_dx is not None:
                _set(model.x.W_dx, W_dx, "W_dx")
            if model.W_dy is not None:
                _set(model.W_dy, W_dy, "W_dy")
            if (naming := naming_term(model.terms)) is not None:
                scales = learned.naming.state_dict()
                naming.load_state_dict({"W": learned.W_dx, "b": learned.b, **scales})
            if model.memory.merging is not None and learned.merges == model.config.merging:
                assert learned.merging is not None
                for name, value in learned.merging.named_parameters():
                    _set(model.memory.merging.get_parameter(name), value, f"merging.{name}")
        _set(model.x.weight, x, "input embeddings")
        _set(model.output.weight, y, "output embeddings")
        encoder, weights = model.memory.encoder, learned.encoder.state_dict()
        if encoder is None:
            return
        if "w" in weights:
            own = torch.tensor(words) - len(SPECIALS)
            weights["w"] = weights["w"][own.clamp(min=0)].masked_fill(own < 0, 0)
        expected, found = (
            {name: tuple(value.shape) for name, value in of.items()}
            for of in (encoder.state_dict(), weights)
        )
        if expected != found:
            raise ValueError(f"the pretrained encoder is {found}, but the model's {expected}")
        encoder.load_state_dict(weights)


def _model_of(
    tensors: dict[str, Tensor], rows: int, merging: Merging | None, path: Path
) -> SentenceCompletion:
    """The model with these parameters; ValueError if they are not those of such a model."""
    names = ("x", "encoder.W_hd", "encoder.forward_lstm.W_hh")
    sizes = [tensors[name].shape for name in names if name in tensors]
    if [len(size) for size in sizes] != [2, 2, 2]:
        raise ValueError(f"{path}: expected matrices {', '.join(names)}")
    (_, dim), (context_dim, _), (_, encoder_dim) = sizes

    def build(generator: torch.Generator | None) -> SentenceCompletion:
        sizes, attention = (dim, encoder_dim, context_dim), "encoder.w" in tensors
        encoder = encoder_of(sizes, rows, len(SPECIALS), attention=attention)
        if "W_dx" not in tensors and merging is None:
            return SentenceCompletion(rows, encoder, generator)
        return GapNaming(rows, encoder, generator, merging)

    with torch.device("meta"):
        checkpoint.check_shapes(tensors, build(None).state_dict(), path)
    model = build(torch.Generator())
    model.load_state_dict(tensors)
    return model


def _outputs(
    x: Float[Tensor, "rows embedding_dim"],
    W_dx: Float[Tensor, "embedding_dim context_dim"],
    model: DynamicTextModel,
) -> tuple[Float[Tensor, "rows hidden_dim"], Float[Tensor, "hidden_dim context_dim"]]:
    """The initial y and W_dy: the cosines of x and W_dx, and lengths of about 1.

    Logits then start small, and an entity is predicted where the word that it resembles would be.
    """
    lengths = x.norm(dim=1, keepdim=True)
    y = x / lengths.clamp(min=1e-12)
    entities = entity_rows(model.config.entities)
    y[entities] = x[entities] / lengths.mean()
    both = torch.cat((y, W_dx.t() / lengths.mean())).numpy()
    wide = torch.from_numpy(resized(both, model.config.hidden_dim))
    return wide[: len(y)], wide[len(y) :].t()


def _set(parameter: Tensor, value: Tensor, name: str) -> None:
    if parameter.shape != value.shape:
        raise ValueError(
            f"the pretrained {name} is {tuple(value.shape)}, but the model's "
            f"{tuple(parameter.shape)}: expected the same size"
        )
    parameter.copy_(value)


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
