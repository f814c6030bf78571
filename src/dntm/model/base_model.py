"""BaseModel: a pretrained causal language model of Hugging Face, its tokenizer and its tables.

It is named by a folder, a GGUF file, or an id on the Hub, with an optional revision: ID@REVISION.
The Hub is only asked for ids that are not on this disk. The logits must be h . y_w + b_w, with h
the last hidden states; models that change them further are refused.

`BaseEmbedding` and `BaseOutput` are its frozen tables. Entities have learned rows in both
(`EntityRows` in the output layer): the sum of a vector shared by all entities, learned from every
mention, and one of their own.
"""

import copy
import hashlib
import json
import sys
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import BOS, SPECIALS, PieceVocabulary, entity_rows
from dntm.model.dynamic_embedding import DynamicEmbedding
from dntm.model.output_layer import MASKED, OutputLayer, Query
from dntm.model.term import Term

_SEPARATOR = "<|endoftext|>"
_NAMES = ("John", "Mary", "he", "she", "it", "they", "London", "Smith", "company", "man")
"""The rows of entities start at the mean of these words."""
_TYPICAL = 500
"""Number of pieces averaged in `typical_state`: the first ones, which are the most frequent."""
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class BaseModel:
    """A frozen language model."""

    name: str
    revision: str
    sha256: str
    """Of the weights and the pieces."""
    decoder: nn.Module
    """Turns embeddings into hidden states."""
    layers: int
    positions: int
    """Maximum length of a text, in pieces."""
    x: Tensor
    """Input embeddings of the pieces."""
    y: Tensor
    """Output embeddings of the pieces."""
    b: Tensor | None
    tokenizer: Any
    start: int
    """The piece before a text."""
    names: tuple[int, ...]
    """The first pieces of some names and pronouns."""

    def vocabulary(self, entities: int, **known: Any) -> PieceVocabulary:
        """The vocabulary with these entity rows before the pieces."""
        pieces = tuple(self.tokenizer.convert_ids_to_tokens(range(len(self.x))))
        # Rows beyond the tokenizer pad the table of some models.
        labels = [piece or f"<unused {row}>" for row, piece in enumerate(pieces)]
        return PieceVocabulary(labels, entities, divide=self.divide, **known)

    @cached_property
    def typical_state(self) -> Float[Tensor, " dim"]:
        """The mean hidden state after single pieces: what the model expects in any context."""
        pieces = torch.arange(min(_TYPICAL, len(self.x)))
        texts = torch.stack((self.x[[self.start]].expand(len(pieces), -1), self.x[pieces]), 1)
        decoder, _ = self.decoder_for(texts, training=False)
        with torch.no_grad():
            found: Tensor = decoder(inputs_embeds=texts).last_hidden_state[:, -1].mean(0)
        return found

    def decoder_for(self, x: Tensor, *, training: bool) -> tuple[nn.Module, torch.dtype]:
        """The decoder on the device of x, and the type in which it computes."""
        low = training and torch.get_float32_matmul_precision() == "medium"
        if low and x.dtype == torch.float32:
            return _in_bfloat16(self.decoder).to(x.device), torch.bfloat16
        # Another model that shares the decoder may have changed its precision.
        return self.decoder.to(x), x.dtype

    def divide(self, text: str) -> list[int]:
        """The pieces of a text."""
        found: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return found


@lru_cache(maxsize=2)
def load_base(name: str) -> BaseModel:
    """Load a model by its folder, GGUF file or id; ValueError if it cannot be used."""
    try:
        transformers: Any = import_module("transformers")
    except ImportError:
        raise ValueError(
            f"core {name!r} is neither lstm nor transformer, and a pretrained core needs the "
            "package transformers: pip install 'dntm[pretrained]'"
        ) from None
    place, options = name, dict[str, Any]()
    if name.endswith(".gguf"):
        place, options["gguf_file"] = str(Path(name).parent), Path(name).name
    elif not Path(name).exists() and "@" in name:
        place, options["revision"] = name.rsplit("@", 1)
    options["local_files_only"] = Path(place).is_dir()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, **options)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            place, dtype=torch.float32, **options
        )
    except (OSError, ValueError, ImportError) as error:
        reason = str(error).strip().split("\n")[0]
        raise ValueError(
            f"core {name!r}, expected lstm, transformer, or the folder, GGUF file or Hub id of a "
            f"causal language model: {reason}"
        ) from None
    model = model.eval().requires_grad_(requires_grad=False)
    head, config = model.get_output_embeddings(), model.config.get_text_config()
    found = BaseModel(
        name=name,
        revision=options.get("revision") or getattr(model.config, "_commit_hash", None) or "",
        sha256=_digest(model, tokenizer),
        decoder=model.get_decoder(),
        layers=config.num_hidden_layers,
        positions=getattr(config, "max_position_embeddings", sys.maxsize),
        x=model.get_input_embeddings().weight.detach(),
        y=head.weight.detach(),
        b=None if head.bias is None else head.bias.detach(),
        tokenizer=tokenizer,
        start=_start(tokenizer),
        names=tuple(tokenizer(f" {n}", add_special_tokens=False)["input_ids"][0] for n in _NAMES),
    )
    _check_logits(model, found)
    if found.divide(" a, a") != [p for word in (" a", ",", " a") for p in found.divide(word)]:
        raise ValueError(f"{name}: its tokenizer divides single words differently than a text")
    return found


@lru_cache(maxsize=1)
def _in_bfloat16(decoder: nn.Module) -> nn.Module:
    return copy.deepcopy(decoder).to(torch.bfloat16)


def _start(tokenizer: Any) -> int:
    """What the tokenizer puts before a text, or the piece that separates training texts."""
    if added := tokenizer("")["input_ids"]:
        return int(added[0])
    known = tokenizer.get_vocab()
    found = known.get(_SEPARATOR, tokenizer.eos_token_id)
    return int(tokenizer.bos_token_id if found is None else found)


@torch.no_grad()
def _check_logits(model: Any, base: BaseModel) -> None:
    """Refuse models whose logits are not h . y + b, or whose cache is not of keys and values."""
    from transformers.cache_utils import DynamicLayer

    pieces = [base.start, *base.divide(" the")]
    x, expected = base.x[pieces].unsqueeze(0), model(torch.tensor([pieces])).logits
    found = base.decoder(inputs_embeds=x, use_cache=True)
    h, cache = found.last_hidden_state, getattr(found, "past_key_values", None)
    logits = h @ base.y.t() + (0 if base.b is None else base.b)
    if not bool((logits - expected).abs().max() < _TOLERANCE * expected.abs().max()):
        raise ValueError(
            f"{base.name}: its logits are not the product of hidden states and output embeddings, "
            "or it scales its input embeddings, so entities cannot be added"
        )
    if not all(type(layer) is DynamicLayer for layer in getattr(cache, "layers", [None])):
        raise ValueError(f"{base.name}: expected full attention in every layer")


def _digest(model: nn.Module, tokenizer: Any) -> str:
    found = hashlib.sha256(json.dumps(tokenizer.get_vocab(), sort_keys=True).encode())
    for name, value in sorted(model.state_dict().items()):
        found.update(f"{name} {tuple(value.shape)}\n".encode())
        found.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


class BaseEmbedding(DynamicEmbedding):
    """The frozen input embeddings of a base model, and learned rows for entities."""

    def __init__(self, base: BaseModel, entities: int, context_dim: int | None) -> None:
        nn.Module.__init__(self)
        dim = base.x.shape[1]
        special = base.x.new_zeros(len(SPECIALS) + entities, dim)
        special[BOS] = base.x[base.start]
        self.register_buffer("weight", torch.cat((special, base.x)), persistent=False)
        self.shared = nn.Parameter(torch.empty(dim))
        self.own = nn.Parameter(torch.empty(entities, dim))
        self.W_dx = None if context_dim is None else nn.Parameter(torch.empty(dim, context_dim))
        self.rows, self.beginning = entity_rows(entities), base.x[list(base.names)].mean(0)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Entities begin near a mean name; the memory begins without effect."""
        _begin(self.shared, self.own, self.beginning, generator)
        if self.W_dx is not None:
            nn.init.zeros_(self.W_dx)

    def forward(self, rows: Int[Tensor, " rows"]) -> Float[Tensor, "rows dim"]:
        """The static embeddings of these rows."""
        found = nn.functional.embedding(rows, self.weight)
        entity = rows - self.rows.start
        inside = torch.nonzero((entity >= 0) & (entity < len(self.own))).squeeze(1)
        own = nn.functional.embedding(entity[inside], self.own) + self.shared
        return found.index_add(0, inside, own)


def _begin(
    shared: Float[Tensor, " dim"],
    own: Float[Tensor, "entities dim"],
    at: Float[Tensor, " dim"],
    generator: torch.Generator | None,
) -> None:
    """Initialize the shared part of all rows with `at`, and their own parts near zero."""
    nn.init.normal_(own, std=0.3 * float(at.pow(2).mean().sqrt()), generator=generator)
    with torch.no_grad():
        shared.copy_(at)


class BaseOutput(OutputLayer):
    """The frozen output embeddings of a base model; special tokens have no probability."""

    def __init__(self, base: BaseModel, x: BaseEmbedding, entities: int) -> None:
        nn.Module.__init__(self)
        special = base.y.new_zeros(entity_rows(entities).stop, base.y.shape[1])
        tied = base.y.data_ptr() == base.x.data_ptr()
        weight = x.weight if tied else torch.cat((special, base.y))
        b = base.y.new_zeros(len(weight))
        b[: len(SPECIALS)] = MASKED
        if base.b is not None:
            b[len(special) :] = base.b
        self.register_buffer("weight", weight, persistent=False)
        self.register_buffer("b", b, persistent=False)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Nothing to draw."""


class EntityRows(Term):
    """The learned output embeddings y_e and biases b_e of entities."""

    def __init__(self, base: BaseModel, entities: int) -> None:
        super().__init__()
        self.shared = nn.Parameter(torch.empty(base.y.shape[1]))
        self.own = nn.Parameter(torch.empty(entities, base.y.shape[1]))
        self.b = nn.Parameter(torch.empty(entities))
        self.beginning = base.y[list(base.names)].mean(0)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Entities begin near a mean name."""
        _begin(self.shared, self.own, self.beginning, generator)
        nn.init.zeros_(self.b)

    @property
    def weight(self) -> Float[Tensor, "entities dim"]:
        """The rows y_e."""
        return self.own + self.shared

    def forward(
        self,
        query: Query,
        seen: Any,  # noqa: ARG002
        positions: Int[np.ndarray, " positions"],  # noqa: ARG002
    ) -> Query:
        """Add h . y_e + b_e to the logits of entities."""
        return query.add(torch.addmm(self.b, query.h, self.weight.t()))
