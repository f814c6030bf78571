"""The floating-point work of the equations, and how fast this machine could do it.

    ideal tokens/s = tokens / (flops of the equations / best rate of a matrix product)

Flops count real tokens only: no padding, no weight gradients of the frozen encoder, and in the
encoder only the words each direction has to read. A product costs two more of its size with the
gradients of both its factors, one more with that of its input only.
"""

from collections.abc import Sequence

import torch

from dntm.benchmark.clock import seconds
from dntm.benchmark.documents import Document
from dntm.model.config import ModelConfig
from dntm.model.entity_memory import encoder_tokens
from dntm.model.language_model import DynamicTextModel
from dntm.schedule import Stretch
from dntm.training.batches import stretches


def matmul_gflops(size: int = 2048, repeats: int = 5) -> float:
    """The best rate at which this machine multiplies square matrices."""
    a, b = torch.randn(2, size, size)
    best = min(seconds(lambda: torch.mm(a, b)) for _ in range(repeats))
    return 2 * size**3 / best / 1e9


def count_work(
    model: DynamicTextModel, documents: Sequence[Document], truncation: int
) -> tuple[int, float]:
    """Predicted tokens of a batch, and the flops of a training pass over them."""
    plans = [
        model.plan(sentences, goes_on) for sentences, goes_on, _ in stretches(documents, truncation)
    ]
    tokens = sum(len(plan.layout.targets) for plan in plans)
    return tokens, sum(_flops(plan, model.config) for plan in plans)


def _flops(stretch: Stretch, config: ModelConfig) -> float:
    x, h, encoder, d = (
        config.embedding_dim, config.hidden_dim, config.encoder_dim, config.context_dim
    )  # fmt: skip
    predicted = len(stretch.layout.targets)
    merged = sum(len(merge.contexts) for level in stretch.levels for merge in level.merges)
    learned = len(stretch.layout.read) * 4 * h * (x + h)
    learned += predicted * h * (config.vocabulary + config.entities)
    learned += merged * (6 * d * d + d * h) + len(stretch.entity_rows) * d * x
    frozen = merged * 2 * encoder * d
    read = sum(len(tokens) for tokens in encoder_tokens(stretch))
    frozen += read * 4 * encoder * (x + encoder)
    return 2.0 * (3 * learned + 2 * frozen)
