"""Known words are hidden as entities."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.entity_slots import encode
from dntm.corpus.vocabulary import BOS, EOS, UNK, Vocabulary
from dntm.model.config import ModelConfig
from dntm.model.extensions.naming import FREQUENT
from dntm.model.language_model import DynamicTextModel
from dntm.model.scorer import Scorer
from dntm.training.batches import Hiding
from dntm.training.config import Recipe
from dntm.training.language_modeling import WindowLoss, train_batch
from dntm.training.processes import Processes
from dntm.training.state import TrainingState

FILLERS = tuple(f"filler{i}" for i in range(FREQUENT))
WORDS = Vocabulary((*FILLERS, "held", "dog", "cat", "mews", "china"), entities=6)
"""The word after the fillers is held out, so it is never hidden."""
ALONE = Processes(0, 1, torch.device("cpu"))


def document(sentences: Sequence[Sequence[Token]], *surfaces: str) -> AnonymizedDocument:
    words = tuple(tuple(surface.split()) for surface in surfaces)
    return AnonymizedDocument(name="d", sentences=sentences, surfaces=words)


def hide(text: AnonymizedDocument, *, hide: float = 0.0, reveal: float = 0.0) -> list[list[str]]:
    hidden = Hiding(Recipe(hide=hide, reveal=reveal), WORDS)(text, np.random.default_rng(1))
    labels = WORDS.labels()
    for sentence in hidden.sentences:
        assert (sentence[0], sentence[-1]) == (BOS, EOS)
    return [[labels[t] for t in sentence[1:-1]] for sentence in hidden.sentences]


HIDDEN = {
    "every occurrence is one entity": (
        document([["dog", "filler0", "dog"], ["cat", "dog"]]),
        [["[1]", "filler0", "[1]"], ["cat", "[1]"]],
    ),
    "entities are numbered by first appearance after hiding": (
        document([["dog", 1], [1, "dog", 2]], "the mayor", "he", "unheard"),
        [["[1]", "[2]"], ["[2]", "[1]", "[3]"]],
    ),
    "words that are frequent, held out or occur once are never hidden": (
        document([["filler3", "filler3", "cat", "held", "held"]]),
        [["filler3", "filler3", "cat", "held", "held"]],
    ),
}


@pytest.mark.parametrize(("text", "expected"), HIDDEN.values(), ids=HIDDEN.keys())
def test_known_words_are_hidden(text: AnonymizedDocument, expected: list[list[str]]) -> None:
    assert hide(text, hide=1.0) == expected


def test_an_entity_with_one_known_name_can_be_revealed() -> None:
    text = document([[1, 2], [1, 2]], "china", "china", "china", "it")

    assert hide(text) == [["[1]", "[2]"], ["[1]", "[2]"]]
    assert hide(text, reveal=1.0) == [["china", "[1]"], ["china", "[1]"]]


def test_no_more_words_are_hidden_than_there_are_free_slots() -> None:
    few = Vocabulary(WORDS.words, entities=2)
    text = document([["dog", "cat", "mews"] * 2, [1]], "it")

    hidden = Hiding(Recipe(hide=1.0), few)(text, np.random.default_rng(1))

    rows = [t for sentence in hidden.sentences for t in sentence]
    assert {t for t in rows if few.labels()[t].startswith("[")} == {3, 4}
    assert UNK not in rows


def test_a_document_with_more_entities_than_slots_is_trained_as_it_is_scored() -> None:
    few = Vocabulary(WORDS.words, entities=2)
    crowd: list[list[Token]] = [[1, "dog", 2], [3, "cat"], [1, "mews", 3], ["dog", 2]]
    names = [["china"], ["he"], ["it"], ["china"], ["it"], ["he"]]
    made = AnonymizedDocument(name="d", sentences=crowd, surfaces=names)

    read = Hiding(Recipe(), few)(made, np.random.default_rng(1))

    assert read == encode(made, few)
    assert UNK not in [token for sentence in read.sentences for token in sentence]

    trained = DynamicTextModel(replace(model().config, entities=2, vocabulary=len(few)))
    scored = next(Scorer(trained, few).score([made]))
    recipe = Recipe(output_sample=0)
    state, step = TrainingState.start(trained, recipe, seed=1), WindowLoss(trained, recipe)
    tokens, nats = train_batch(state, [read], recipe, step, ALONE)

    assert tokens == len(scored)
    assert nats == pytest.approx(-scored.sum(), rel=1e-5)


def model() -> DynamicTextModel:
    sizes = {"embedding_dim": 16, "hidden_dim": 16, "encoder_dim": 16, "context_dim": 16}
    rows = {"vocabulary": len(WORDS), "entities": WORDS.entities}
    config = ModelConfig(extensions=("naming",), **rows, **sizes)  # type: ignore[arg-type]
    return DynamicTextModel(config, torch.Generator().manual_seed(1))
