"""Eviction: entities behave the same with few slots as with one slot for each of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.entity_slots import NOBODY, DocumentRows, SlotAllocator, encode
from dntm.corpus.vocabulary import EOS, Vocabulary, entity_rows
from dntm.model.config import ModelConfig
from dntm.model.fast.layout import indices
from dntm.model.fast.read import exchange_memories, query, read
from dntm.model.fast.window import windows
from dntm.model.language_model import DynamicTextModel, score_block
from dntm.model.output_layer import Query
from dntm.model.parameters import State
from tests.model.small import ALL_EXTENSIONS, backward, configure

WORDS = ("met", "saw", "left", "home", "the", ".")
FEW, ENOUGH = 3, 9
MODELS = {
    "B": configure("input", "max"),
    "C": configure("output", "attention"),
    "D": configure(),
    "Transformer D": configure("both", "gru", core="transformer"),
    "A extended": configure("baseline", extensions=("salience", "unseen-pooling", "pointer")),
    "C extended": configure("output", "mean", ALL_EXTENSIONS["output"]),
    "D extended": configure("both", "mean", ALL_EXTENSIONS["both"]),
    "Transformer D extended": configure("both", "gru", ALL_EXTENSIONS["both"], core="transformer"),
}
MANY: list[list[Token]] = [
    [1, "met", 2, "."],
    [3, "saw", 1, "and", 4, "."],
    ["the", 2, "left", 1, "."],
    [5, "met", 6, "home", 3, "."],
    [1, "saw", 1, "."],
    ["home", "."],
    [4, "met", 7, "and", 5, "."],
    [2, "left", "."],
    [7, "saw", 3, "home", 2, "."],
]
every_model = pytest.mark.parametrize("config", MODELS.values(), ids=MODELS.keys())


def with_few_and_enough(config: ModelConfig) -> tuple[DynamicTextModel, DynamicTextModel]:
    """Two models whose entity rows are all alike, so that only their states differ."""
    generator = torch.Generator().manual_seed(5)
    few = DynamicTextModel(config).double()
    more = replace(config, entities=ENOUGH, vocabulary=config.vocabulary + ENOUGH - FEW)
    enough = DynamicTextModel(more).double()
    with torch.no_grad():
        for name, parameter in few.named_parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.6)
            other = enough.get_parameter(name)
            if (first := first_entity_row(name)) is not None:
                parameter[first : first + FEW] = parameter[first]
                other[:first], other[first + ENOUGH :] = parameter[:first], parameter[first + FEW :]
                other[first : first + ENOUGH] = parameter[first]
            else:
                other.copy_(parameter)
    return few, enough


def first_entity_row(name: str) -> int | None:
    """Where the rows of entities begin in a parameter that has some."""
    if name == "terms.salience.k":
        return 0
    return entity_rows(1).start if name in {"x.weight", "output.weight", "output.b"} else None


def encoded(sentences: list[list[Token]], entities: int) -> DocumentRows:
    vocabulary = Vocabulary(WORDS, entities=entities)
    return encode(AnonymizedDocument(name="d", sentences=sentences), vocabulary)


def occupants(sentences: list[list[Token]], *, pooled: bool) -> list[dict[int, int]]:
    """The slot of each entity that has one, as each token is predicted.

    With pooling, unseen entities are left out: their logit depends on the number of free slots.
    """
    slot_of: dict[int, int] = {}
    found, known = [], set[Token]()
    largest = max((t for s in sentences for t in s if isinstance(t, int)), default=0)
    allocator = SlotAllocator(FEW, evicts=largest > FEW)
    for sentence in sentences:
        slots, evictions = allocator.assign(sentence)
        for position, (token, slot) in enumerate(
            zip([*sentence, "."], [*slots, None], strict=True)
        ):
            for eviction in evictions:
                if eviction.position == position and eviction.entity == NOBODY:
                    del slot_of[eviction.evicted]
            found.append({e: s for e, s in slot_of.items() if e in known or not pooled})
            if isinstance(token, int) and slot is not None:
                slot_of[token] = slot
                known.add(token)
    return found


def log_odds(model: DynamicTextModel, asked: Query) -> Tensor:
    """The log-odds of every row against <eos> at each position, with gradients."""
    logits = asked.h @ model.output.weight.t() + model.output.b
    if asked.entity_logits is not None:
        rows = entity_rows(model.config.entities)
        padded = torch.zeros_like(logits)
        padded[:, rows] = asked.entity_logits
        logits = logits + padded
    if asked.copies is not None:
        targets = [torch.full((len(logits),), row) for row in range(logits.shape[1])]
        copied = [asked.copies.log_sum_of(own) for own in targets]
        logits = torch.logaddexp(logits, torch.stack(copied, 1))
    return logits - logits[:, EOS : EOS + 1]


class Result:
    """What a model computes for some documents, read `size` sentences at a time."""

    def __init__(self, model: DynamicTextModel, documents: list[DocumentRows], size: int) -> None:
        self.d: list[list[Tensor]] = [[] for _ in documents]
        """After each mention."""
        self.odds: list[list[Tensor]] = [[] for _ in documents]
        """Of every row, as each token is predicted."""
        self.state: State = model.initial_state(len(documents))
        for text in windows(
            [d.sentences for d in documents], size, [d.evictions for d in documents]
        ):
            window = model.plan(text.sentences, evictions=text.evictions)
            found = read(model, window, self.state.select(text.kept))
            layout = window.layout
            odds = log_odds(model, query(model, found, layout.predicting))
            document = layout.document[layout.sentence[layout.predicting]]
            for number, own in enumerate(text.documents):
                merged = window.merges.state[window.merges.document == number]
                self.d[own] += found.d[indices(merged, odds)]
                self.odds[own] += odds[indices(np.flatnonzero(document == number), odds)]
            self.state = found.after


def assert_alike(config: ModelConfig, texts: list[list[list[Token]]], size: int) -> None:
    """Compare states, odds and gradients of few and enough slots."""
    models = with_few_and_enough(config)
    slots = [occupants(text, pooled="unseen-pooling" in config.extensions) for text in texts]
    results, values = [], []
    for model, entities in zip(models, (FEW, ENOUGH), strict=True):
        result = Result(model, [encoded(text, entities) for text in texts], size)
        words = slice(entity_rows(entities).stop, None)
        odds = [
            torch.cat((row[words], *(row[2 + (s if entities == FEW else e)][None]
                                     for e, s in sorted(own.items()))))
            for document, text in zip(result.odds, slots, strict=True)
            for row, own in zip(document, text, strict=True)
        ]  # fmt: skip
        results.append(torch.cat([v for own in result.d for v in own] + odds))
        weights = torch.linspace(0.5, 1.5, len(results[-1])).double()
        values.append((weights * results[-1]).sum())
    torch.testing.assert_close(*results, atol=1e-10, rtol=1e-10)

    for value in values:
        if value.requires_grad:
            backward(value)
    for name, _ in models[0].named_parameters():
        grads = []
        for model in models:
            own = model.get_parameter(name)
            grad = torch.zeros_like(own) if own.grad is None else own.grad
            if (first := first_entity_row(name)) is not None:
                rows = slice(first, first + model.config.entities)
                grad = torch.cat((grad[:first], grad[rows].sum(0)[None], grad[rows.stop :]))
            grads.append(grad)
        torch.testing.assert_close(*grads, atol=1e-9, rtol=1e-9, msg=name)


@pytest.mark.parametrize("size", [1, 3, 20])
@every_model
def test_an_entity_in_a_reassigned_slot_is_the_same_as_in_its_own(
    config: ModelConfig, size: int
) -> None:
    assert any(encoded(MANY, FEW).evictions)

    assert_alike(config, [MANY[:2], MANY, [], MANY[::-1]], size)


SENTENCE = st.lists(st.sampled_from([1, 2, 3, 4, 5, 6, "met"]), max_size=6).filter(
    lambda tokens: len({t for t in tokens if isinstance(t, int)}) <= FEW
)


@settings(max_examples=15, deadline=None)
@given(st.lists(SENTENCE, min_size=1, max_size=8), st.integers(1, 5))
def test_any_text_reads_the_same_with_few_slots(sentences: list[list[Token]], size: int) -> None:
    assert_alike(MODELS["D extended"], [sentences], size)


@pytest.mark.parametrize("core", ["lstm", "transformer"])
def test_an_entity_state_of_entity_nlm_begins_anew_in_a_reassigned_slot(core: str) -> None:
    forward: list[list[Token]] = [
        [1, "met", 2, "."], [2, "saw", 3, "."], [4, "left", 3], [4, 4, "met", 5], ["the", 6, 5]
    ]  # fmt: skip
    evictions = [e for sentence in encoded(forward, FEW).evictions for e in sentence]
    assert [e.entity for e in evictions] == [NOBODY] * 4, "no evicted entity returns"

    for size in (1, 20):
        assert_alike(configure("baseline", extensions=("entity-nlm",), core=core), [forward], size)


def test_a_detached_state_has_no_gradients_and_remembers_each_entity_once() -> None:
    few, _ = with_few_and_enough(MODELS["D"])

    memory = Result(few, [encoded(MANY, FEW)], 2).state.detach().memory

    assert set(memory.evicted[0]) == {1, 4, 5, 6}
    assert not memory.d.requires_grad
    assert not any(d.requires_grad for d in memory.evicted[0].values())


@every_model
def test_a_block_has_the_states_and_scores_of_its_sentences_one_by_one(config: ModelConfig) -> None:
    few, _ = with_few_and_enough(config)
    rows = encoded(MANY, FEW)
    block = score_block(
        few, few.plan([rows.sentences], evictions=[rows.evictions]), few.initial_state(1)
    )

    state, scores = few.initial_state(1), []
    for number, (sentence, evictions) in enumerate(
        zip(rows.sentences, rows.evictions, strict=True)
    ):
        begins = state.memory.d[0].clone()
        aside = dict(state.memory.evicted[0])
        for eviction in evictions:
            initial = few.memory.initial_row(begins)
            aside[eviction.evicted] = begins[eviction.slot - 1].clone()
            begins[eviction.slot - 1] = aside.get(eviction.entity, initial)
        [log_p], state = few.score(few.plan([[sentence]], evictions=[[evictions]]), state)
        scores += log_p.tolist()
        dim = block.begins.shape[2]
        torch.testing.assert_close(block.begins[number], begins[:, :dim])
        torch.testing.assert_close(block.ends[number], state.memory.d[0, :, :dim])
    np.testing.assert_allclose(block.log_p[0], scores, atol=1e-12)


def test_each_position_copies_the_entities_in_the_slots_that_they_have_there() -> None:
    few, _ = with_few_and_enough(MODELS["A extended"])
    text = encoded([[1], [2], [3], [4], [1]], FEW)
    window = few.plan([text.sentences], evictions=[text.evictions])

    asked = query(few, read(few, window, few.initial_state(1)), window.layout.predicting)

    assert asked.copies is not None
    [(logits, rows)] = asked.copies.parts
    visible = [sorted(rows[own > -1000].tolist()) for own in logits]
    first = entity_rows(FEW).start
    one, two, three = first, first + 1, first + 2
    assert visible == [
        *([], [one]),
        *([EOS, one], [EOS, one, two]),
        *([EOS, EOS, one, two], [EOS, EOS, two, three]),  # 1 is evicted
        *([EOS] * 3 + [two, three], [EOS] * 3 + [one, three]),  # 2 is evicted
        *([EOS] * 4 + [one, three], [EOS] * 4 + [one, two, two]),  # 3 is evicted, 1 returns
    ]


def test_free_slots_take_no_part_in_an_exchange_of_memories() -> None:
    model, _ = with_few_and_enough(MODELS["C"])
    rows, start = encoded(MANY, FEW), model.initial_state(1)
    window = model.plan([rows.sentences], evictions=[rows.evictions])

    exchanged = exchange_memories(window, start.memory.d[..., : model.config.context_dim])

    is_known = read(model, window, start).d.detach().any(1).numpy()
    free = np.array([c.entity == NOBODY for c in window.restored])
    assert free.any()
    for own, others in zip(window.known, exchanged.known, strict=True):
        assert np.array_equal(is_known[own], is_known[others])
        assert set(own) == set(others)
