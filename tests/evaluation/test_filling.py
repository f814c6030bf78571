"""Gaps filled side by side against the naive way: put the entity in, read the sentence in full."""

from collections.abc import Iterator
from typing import get_args

import numpy as np
import pytest
import torch

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.vocabulary import Vocabulary
from dntm.evaluation.cloze import ClozeRecords, ClozeText, Gap
from dntm.model import text_model
from dntm.model.config import Merging, Variant
from dntm.model.fast import filling
from dntm.model.text_model import TextModel
from tests.model.small import build, oracle_of

EVERY = [("baseline", "gru-relu")] + [
    (variant, merging) for variant in ("input", "output", "both") for merging in get_args(Merging)
]
VOCABULARY = Vocabulary(tuple("abcdef"), entities=3)
# Entities that never come back, a sentence with several gaps, one without, an empty sentence, a
# document without gaps and an empty one.
LONG: list[list[Token]] = [
    ["a", 1, "b", 2],
    [2, "c", 1, "d", 1, "a"],
    ["e", "f"],
    [3, 1],
    [],
    ["a", 2, "b", "c", "a", "f", "zzz"],
    [1],
    ["b", "c", 3, "d", 2],
]
SHORT: list[list[list[Token]]] = [[["a"], [1, "b"]], [], LONG[1:5], [[1, 2], [2, 1, "a"]]]
TEXTS = [
    ClozeText.of(AnonymizedDocument(name=str(n), sentences=sentences), same_sentence=True)
    for n, sentences in enumerate([LONG, *SHORT])
]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_model, "SENTENCES", 3)
    monkeypatch.setattr(text_model, "CLOZE_BATCH", 4)
    monkeypatch.setattr(filling, "PLACES", 7)


def fillings(text: ClozeText) -> Iterator[tuple[Gap, list[Token]]]:
    """Each gap's sentence with each candidate in the gap."""
    for gap in text.gaps:
        sentence = text.document.sentences[gap.sentence]
        for entity in gap.candidates:
            yield gap, [*sentence[: gap.position], entity, *sentence[gap.position + 1 :]]


@pytest.mark.parametrize("beyond", [False, True])
@pytest.mark.parametrize(("variant", "merging"), EVERY)
def test_likelihoods_are_the_oracles(variant: Variant, merging: Merging, beyond: bool) -> None:
    tied = variant == "input"
    model = build(variant, merging, tied=tied, beyond=beyond)
    oracle = oracle_of(model)

    filled = list(TextModel(model, VOCABULARY).fill_all(TEXTS))

    for text, found in zip(TEXTS, filled, strict=True):
        readings = [oracle.begin()]
        for sentence in text.document.sentences:
            readings.append(oracle.read([VOCABULARY.encode(sentence)], readings[-1])[1])
        gap, rest = [], []
        for blank, tokens in fillings(text):
            values, _ = oracle.read([VOCABULARY.encode(tokens)], readings[blank.sentence])
            log_p = [value.item() for value in values]
            gap.append(log_p[blank.position])
            rest.append(sum(log_p[blank.position + 1 :]))
        np.testing.assert_allclose(found.gap, gap, atol=1e-10, rtol=0)
        np.testing.assert_allclose(found.rest, rest, atol=1e-10, rtol=0)


@pytest.mark.parametrize("variant", get_args(Variant))
def test_in_single_precision_they_are_those_of_whole_documents(variant: Variant) -> None:
    model = TextModel(build(variant, "gru-relu").float(), VOCABULARY)

    found = next(model.fill_all(TEXTS))

    whole = []
    for gap, tokens in fillings(TEXTS[0]):
        sentences = [*LONG[: gap.sentence], tokens]
        log_p = model.score(AnonymizedDocument(name="", sentences=sentences))
        whole.append(log_p[gap.position - len(tokens) - 1 :].sum())
    np.testing.assert_allclose(found.gap + found.rest, whole, rtol=1e-6)


def test_how_documents_are_batched_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = TextModel(build("both", "gru-relu"), VOCABULARY)
    pieces = list(model.fill_all(TEXTS))

    monkeypatch.setattr(text_model, "SENTENCES", 20)
    monkeypatch.setattr(text_model, "CLOZE_BATCH", 1)
    monkeypatch.setattr(filling, "PLACES", 4096)
    whole = list(model.fill_all(TEXTS))

    for one, other in zip(pieces, whole, strict=True):
        np.testing.assert_allclose(one.rest, other.rest, atol=1e-12, rtol=0)
        np.testing.assert_allclose(one.gap, other.gap, atol=1e-12, rtol=0)


def test_a_model_in_training_keeps_its_mode_and_drops_nothing() -> None:
    model = build("both", "gru-relu", dropouts={"dropout_embedding": 0.5, "dropout_context": 0.5})
    model.train()

    one, other = (list(TextModel(model, VOCABULARY).fill_all(TEXTS)) for _ in range(2))

    assert model.training
    np.testing.assert_array_equal(one[0].rest, other[0].rest)


def test_entities_the_model_cannot_tell_apart_are_ties() -> None:
    model = build("baseline", "gru-relu").float()
    with torch.no_grad():
        for table in (model.x.weight, model.output.y.weight, model.output.b):
            table[3:6] = table[3]

    records = ClozeRecords.of(TEXTS, TextModel(model, VOCABULARY).fill_all(TEXTS))

    assert len(records) > 5
    assert records.quantile.tolist() == [0.0] * len(records)
