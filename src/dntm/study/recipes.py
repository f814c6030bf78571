"""Recipes: sizes of the model and settings of training, as data (Section 5.1).

`paper` is the recipe of Section 5.1. `modern` suits small corpora (`docs/log.md`). `naming` trains
the model to name hidden words, after the pretraining of the same name. `quick` trains in minutes.

Departure: all recipes except `paper`.
"""

from dntm.corpus.token_store import StoreConfig
from dntm.model.config import ModelConfig
from dntm.training.config import EncoderConfig, PretrainRecipe, Recipe

RECIPES: dict[str, tuple[ModelConfig, Recipe]] = {
    "paper": (ModelConfig(), Recipe()),
    "modern": (
        ModelConfig(
            embedding_dim=256,
            hidden_dim=256,
            encoder_dim=128,
            context_dim=128,
            tied=True,
            dropout_embedding=0.3,
            dropout_hidden=0.4,
            dropout_context=0.2,
        ),
        Recipe(
            learning_rate=2e-3,
            batch=4,
            epochs=10,
            weight_decay=0.05,
            schedule="cosine",
            warmup=0.05,
            average=0.998,
        ),
    ),
    "naming": (
        ModelConfig(
            merging="attention",
            embedding_dim=100,
            hidden_dim=256,
            encoder_dim=256,
            context_dim=256,
            extensions=("entity-residual", "salience", "unseen-pooling", "naming"),
            dropout_embedding=0.1,
            dropout_hidden=0.3,
            dropout_context=0.1,
        ),
        Recipe(
            learning_rate=2e-3,
            embedding_rate=0.1,
            batch=8,
            epochs=2,
            validations=1,
            weight_decay=0.01,
            schedule="cosine",
            warmup=0.02,
            average=0.998,
            output_sample=8000,
            hide=0.4,
            reveal=0.5,
            naming_weight=2.0,
        ),
    ),
    "quick": (
        ModelConfig(
            embedding_dim=96,
            hidden_dim=96,
            encoder_dim=64,
            context_dim=64,
            tied=True,
            dropout_embedding=0.1,
            dropout_hidden=0.2,
            dropout_context=0.1,
        ),
        Recipe(
            learning_rate=3e-3,
            batch=2,
            epochs=5,
            validations=1,
            weight_decay=0.05,
            schedule="cosine",
            warmup=0.05,
            average=0.995,
        ),
    ),
}

PRETRAINING: dict[str, tuple[EncoderConfig, PretrainRecipe, StoreConfig]] = {
    "paper": (EncoderConfig(), PretrainRecipe(), StoreConfig()),
    "small": (
        EncoderConfig(embedding_dim=256, encoder_dim=256),
        PretrainRecipe(
            learning_rate=2e-3, iterations=15_000, schedule="cosine", warmup=0.02, average=0.999
        ),
        StoreConfig(min_count=20, vocabulary_size=30_000),
    ),
    "naming": (
        EncoderConfig(embedding_dim=100, encoder_dim=256, context_dim=256),
        PretrainRecipe(
            objective="naming",
            learning_rate=2e-3,
            embedding_rate=0.1,
            iterations=12_000,
            schedule="cosine",
            warmup=0.02,
            average=0.999,
        ),
        StoreConfig(min_count=10, vocabulary_size=31_000, longest=40, lower=True, held_out=0.01),
    ),
}
"""`paper` is the paper's pretraining. `small` suits about ten million words. `naming` trains the
encoder to name hidden words, in lower case like most published word vectors."""
