"""Initial weights: random, from pretraining, from word vectors or from another run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from dntm.corpus.token_store import TokenStore
from dntm.corpus.vectors import WordVectors
from dntm.corpus.vocabulary import SPECIALS, Vocabulary, entity_rows
from dntm.files import folder_of
from dntm.model.base_model import load_base
from dntm.model.checkpoint import VOCABULARY, best_of, check_shapes, from_pretrained
from dntm.model.context_encoder import ContextEncoder
from dntm.model.extensions.word_attention import WordAttention, encoder_of
from dntm.model.language_model import DynamicTextModel, parameter_count
from dntm.model.pretrained_encoder import PretrainedEncoder, begin_with
from dntm.model.sentence_completion import GapNaming, SentenceCompletion
from dntm.training.config import PretrainConfig, TrainConfig
from dntm.training.state import WORDS


def fit_to_base(config: TrainConfig, vocabulary: Vocabulary) -> tuple[TrainConfig, Vocabulary]:
    """For a pretrained core: the run with its sizes, and its vocabulary instead of the dataset's.

    Any other run is returned unchanged.
    """
    if not config.model.is_pretrained:
        return config, vocabulary
    for option in ("pretrained", "vectors"):
        if getattr(config, option):
            raise ValueError(f"--{option} with a pretrained core, which has its own embeddings")
    if WORDS in config.training.freeze:
        raise ValueError(f"freeze {WORDS}: the words of a pretrained core are always frozen")
    base = load_base(config.model.core)
    dim = base.x.shape[1]
    model = replace(config.model, embedding_dim=dim, hidden_dim=dim)
    return replace(config, model=model), base.vocabulary(
        vocabulary.entities, settings=vocabulary.settings
    )


def initial_model(config: TrainConfig, vocabulary: Vocabulary) -> DynamicTextModel:
    """Build the model; load pretrained weights, word vectors and the weights of `start_from`.

    `start_from` does not replace the word embeddings and the memory of pretraining.
    """
    generator = torch.Generator().manual_seed(config.seed)
    try:
        model = DynamicTextModel(config.model, generator)
    except RuntimeError as error:
        if "alloc" not in str(error):
            raise
        count = parameter_count(config.model)
        raise ValueError(f"a model with {count:,} parameters does not fit into memory") from None
    if config.pretrained:
        pretrained = PretrainedEncoder.load(best_of(config.pretrained))
        pretrained.load_into(model, vocabulary)
        if config.training.freeze_encoder:
            model.freeze_encoder(merging=pretrained.model.merges == config.model.merging)
    if config.vectors:
        vectors = WordVectors.read(config.vectors, vocabulary)
        begin_with(model.x.weight, vectors, vocabulary)
        # Short vectors keep the first logits small; a tied table is an output layer too.
        begin_with(model.output.weight, vectors, vocabulary, length=1.0)
    if config.start_from:
        given = ("x.", "memory.") if config.pretrained else ()
        _copy_weights(model, vocabulary, config.start_from, given)
    _freeze(model, config.training.freeze)
    return model


def with_source_counts(
    config: TrainConfig, model: DynamicTextModel, vocabulary: Vocabulary
) -> Vocabulary:
    """The vocabulary with the word counts of the text that its embeddings were trained on.

    That is the dataset, or for frozen embeddings the text of the model in `start_from`. A
    pretrained core has no counts.
    """
    learned = model.x.weight.requires_grad and WORDS not in config.training.freeze
    if config.start_from is None or config.model.is_pretrained or learned:
        return vocabulary
    path = best_of(folder_of(config.start_from)) / VOCABULARY
    source = Vocabulary.load(path, entities=vocabulary.entities)
    return vocabulary if source.counts is None else replace(vocabulary, counts=source.counts)


def _freeze(model: DynamicTextModel, parts: Sequence[str]) -> None:
    """Freeze the parameters of these parts; ValueError if one is unknown or nothing is left."""
    if WORDS in parts:
        entities = entity_rows(model.config.entities)
        learned = torch.zeros(len(model.x.weight), 1)
        learned[entities] = 1

        def keep_words(gradient: Tensor) -> Tensor:
            return gradient * learned.to(gradient.device)

        model.x.weight.register_hook(keep_words)  # type: ignore[no-untyped-call]
        parts = [part for part in parts if part != WORDS]
    # A tied table has two names.
    named = dict(model.named_parameters(remove_duplicate=False))
    for part in parts:
        own = [p for name, p in named.items() if name == part or name.startswith(f"{part}.")]
        if not own:
            known = ", ".join(sorted({name.split(".")[0] for name in named}))
            raise ValueError(
                f"freeze is {part!r}, which this model does not have: expected {known}"
            )
        for parameter in own:
            parameter.requires_grad = False
    if not any(parameter.requires_grad for parameter in named.values()):
        raise ValueError(f"freeze is {', '.join(parts)}: nothing is left to train")


def _copy_weights(
    model: DynamicTextModel, vocabulary: Vocabulary, source: Path, given: tuple[str, ...]
) -> None:
    """Copy the weights that both models have, except those whose names begin as in `given`.

    If only this model has dynamic output, the memory has no effect on its logits at first.
    """
    folder = best_of(folder_of(source))
    trained, words = from_pretrained(folder)
    if words != vocabulary:
        raise ValueError(f"{folder} has another vocabulary than the dataset: cannot start from it")
    # Unlike `named_parameters`, this lists a tied table twice, as x and as y.
    weights = trained.state_dict()
    if model.W_dy is not None and trained.W_dy is None:
        nn.init.zeros_(model.W_dy)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name not in weights or name.startswith(given):
                continue
            if weights[name].shape != parameter.shape:
                raise ValueError(
                    f"{folder}: {name} has shape {tuple(weights[name].shape)}, "
                    f"expected {tuple(parameter.shape)}"
                )
            parameter.copy_(weights[name])
        rows = entity_rows(vocabulary.entities)
        if model.x.weight[rows].shape == trained.x.weight[rows].shape:
            model.x.weight[rows] = trained.x.weight[rows]


def initial_encoder(config: PretrainConfig, store: TokenStore) -> SentenceCompletion:
    """Build the model of pretraining; load word vectors or the weights of `start_from`."""
    generator = torch.Generator().manual_seed(config.seed)
    rows, own = len(store.vocabulary), config.model
    sizes = (own.embedding_dim, own.encoder_dim, own.context_dim or own.embedding_dim)
    model = SentenceCompletion(rows, ContextEncoder(*sizes[:2], sizes[0]), generator)
    if config.training.objective == "naming":
        encoder = encoder_of(sizes, rows, len(SPECIALS), attention=own.attention)
        model = naming = GapNaming(rows, encoder, generator, own.merging)
        if isinstance(encoder, WordAttention):
            encoder.begin_with_bag(naming.W_dx, store.counts[len(SPECIALS) :])
    if config.start_from:
        _copy_encoder(model, store.vocabulary.words, config.start_from)
    elif config.vectors:
        begin_with(model.x, WordVectors.read(config.vectors, store.vocabulary), store.vocabulary)
    model.x.requires_grad_(config.training.embedding_rate > 0)
    return model


def _copy_encoder(model: SentenceCompletion, words: Sequence[str], source: Path) -> None:
    given = PretrainedEncoder.load(best_of(source))
    weights = given.model.state_dict()
    if given.vocabulary.words != words:
        raise ValueError(f"{source} has other words than the text: cannot start from it")
    expected = {
        name: value
        for name, value in model.state_dict().items()
        if name in weights or not name.startswith("merging.")
    }
    check_shapes(weights, expected, source)
    # A merging function that the source does not have is trained from the beginning.
    model.load_state_dict(weights, strict=False)
