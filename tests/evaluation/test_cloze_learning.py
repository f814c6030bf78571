"""A tiny dynamic model learns who does what, and the cloze test shows it."""

import random

import pytest
import torch
from torch import nn

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.entity_slots import encode
from dntm.corpus.vocabulary import Vocabulary
from dntm.evaluation.cloze import ClozeRecords, ClozeSummary, ClozeText, summarize_cloze
from dntm.model.config import ModelConfig
from dntm.model.language_model import DynamicTextModel
from dntm.model.scorer import Scorer

ACTS = ("forged", "baked", "sang", "sailed")
VOCABULARY = Vocabulary(ACTS, entities=3)


def story(rng: random.Random) -> AnonymizedDocument:
    """Three people, each doing the same thing all the time: only memory tells who does what."""
    acts = rng.sample(ACTS, 3)
    order = [1, 2, 3] + [rng.randint(1, 3) for _ in range(7)]
    return AnonymizedDocument(name="story", sentences=[[who, acts[who - 1]] for who in order])


def train(model: DynamicTextModel, rng: random.Random, updates: int) -> None:
    adam = torch.optim.Adam(model.parameters(), lr=0.003)
    for _ in range(updates):
        stories = [encode(story(rng), VOCABULARY).sentences for _ in range(32)]
        plan = model.plan(stories, [False] * len(stories))
        nats, _ = model.loss(plan, model.initial_state(len(stories)))
        adam.zero_grad()
        (nats / len(plan.layout.targets)).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()


@pytest.mark.usefixtures("unchecked")
def test_a_trained_dynamic_model_beats_chance_and_an_untrained_one_does_not() -> None:
    # Not every seed leaves the plateau in this time.
    rng = random.Random(3)
    texts = [ClozeText.of(story(rng)) for _ in range(40)]
    config = ModelConfig(
        vocabulary=len(VOCABULARY), entities=3, merging="max",
        embedding_dim=24, hidden_dim=24, encoder_dim=24, context_dim=24,
    )  # fmt: skip
    model = DynamicTextModel(config, torch.Generator().manual_seed(3))
    with torch.no_grad():
        model.x.weight.mul_(10)  # words that differ clearly are learned in seconds

    def cloze() -> ClozeSummary:
        scorer = Scorer(model, VOCABULARY)
        return summarize_cloze(ClozeRecords.of(texts, scorer.complete(texts)))

    untrained = cloze()
    train(model, rng, updates=280)
    trained = cloze()

    assert trained.gaps == 40 * 7
    assert abs(untrained.mean_quantile - 0.5) < 0.1
    assert trained.mean_quantile > 0.75
    assert trained.rest_mean_quantile > 0.75
    assert trained.accuracy > trained.chance_accuracy + 0.2
