"""Lent rows: an entity means the same whether it has a row of its own or was lent one."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.rows import DocumentRows, Lender, encode
from dntm.corpus.vocabulary import Vocabulary, entity_rows
from dntm.model.config import ModelConfig
from dntm.model.fast.entity_memory import indices
from dntm.model.fast.read import distribution, point, predict, read
from dntm.model.fast.window import windows
from dntm.model.language_model import DynamicTextModel
from dntm.model.reading_state import ReadingState
from dntm.model.text_model import TextModel

WORDS = ("met", "saw", "left", "home", "the", ".")
FEW, ENOUGH = 3, 9
CONFIG = ModelConfig(
    vocabulary=3 + FEW + len(WORDS),
    entities=FEW,
    embedding_dim=5,
    hidden_dim=4,
    encoder_dim=3,
    context_dim=6,
)
VARIANTS = [
    CONFIG,
    replace(CONFIG, variant="input"),
    replace(CONFIG, variant="output", merging="attention"),
    replace(CONFIG, variant="baseline", salience=True),
    replace(CONFIG, merging="mean", salience=True, direct=True, pointer=True),
]
CROWD: list[list[Token]] = [
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


def pair(config: ModelConfig) -> tuple[DynamicTextModel, DynamicTextModel]:
    """Models with few rows and with enough, all of which begin alike: only d tells them apart."""
    generator = torch.Generator().manual_seed(5)
    few = DynamicTextModel(config, generator).double()
    many = replace(config, entities=ENOUGH, vocabulary=config.vocabulary + ENOUGH - FEW)
    enough = DynamicTextModel(many).double()
    rows = entity_rows(FEW)
    with torch.no_grad():
        for name, parameter in few.named_parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.7)
            if name in {"x.weight", "output.y.weight", "output.b"}:
                parameter[rows] = parameter[rows.start]
            if name == "salience.k":
                parameter[:] = parameter[0]
            other = enough.get_parameter(name)
            if other.shape == parameter.shape:
                other.copy_(parameter)
            else:
                first = rows.start if name != "salience.k" else 0
                more = parameter[first].expand(ENOUGH - FEW, *parameter.shape[1:])
                other.copy_(torch.cat((parameter[: first + FEW], more, parameter[first + FEW :])))
    return few, enough


def encoded(sentences: list[list[Token]], entities: int) -> DocumentRows:
    vocabulary = Vocabulary(WORDS, entities=entities)
    return encode(AnonymizedDocument(name="d", sentences=sentences), vocabulary)


def owners(sentences: list[list[Token]], rows: int) -> list[dict[int, int]]:
    """Who has a row, by the entity, as each token is predicted."""
    owner: dict[int, int] = {}
    found = []
    lender = Lender(rows)
    for sentence in sentences:
        taken, loans = lender.read(sentence)
        for position, (token, row) in enumerate(zip([*sentence, "."], [*taken, None], strict=True)):
            owner |= {loan.row: loan.entity for loan in loans if loan.position == position}
            found.append({entity: row for row, entity in owner.items()})
            if isinstance(token, int) and row is not None:
                owner[row] = token
    return found


class Found:
    """What a model makes of some documents."""

    def __init__(self, model: DynamicTextModel, documents: list[DocumentRows], size: int) -> None:
        self.d: list[list[Tensor]] = [[] for _ in documents]
        """After each mention."""
        self.h: list[list[Tensor]] = [[] for _ in documents]
        self.odds: list[list[Tensor]] = [[] for _ in documents]
        """Of every row against <eos>, as each token is predicted."""
        self.pointed: list[Tensor] = []
        """What the pointer says of what was said, for each predicted token."""
        self.state: ReadingState = model.initial_state(len(documents))
        sentences, loans = [d.sentences for d in documents], [d.loans for d in documents]
        for text in windows(sentences, size, loans):
            window = model.plan(text.sentences, loans=text.loans)
            found = read(model, window, self.state.select(text.kept))
            layout = window.layout
            h, log_p = distribution(model, found, layout.predicting)
            odds = log_p - log_p[:, 2:3]
            _, entities = predict(model, found, layout.predicting)
            if (pointed := point(model, found, layout.predicting, h, entities)) is not None:
                self.pointed.append(pointed.log_sum_of(indices(layout.targets, h)))
            document = layout.document[layout.sentence[layout.predicting]]
            for number, own in enumerate(text.documents):
                mine = indices(np.flatnonzero(document == number), h)
                merged = found.merges.state[found.merges.document == number]
                self.d[own] += found.d[indices(merged, h)]
                self.h[own] += h[mine]
                self.odds[own] += odds[mine]
            self.state = found.after

    def all(self) -> Tensor:
        """Every d and h as one vector."""
        return torch.cat([v for kind in (self.d, self.h) for own in kind for v in own])


def assert_alike(config: ModelConfig, texts: list[list[list[Token]]], size: int) -> None:
    few, enough = pair(config)

    lent = Found(few, [encoded(text, FEW) for text in texts], size)
    own = Found(enough, [encoded(text, ENOUGH) for text in texts], size)

    torch.testing.assert_close(lent.all(), own.all(), atol=1e-9, rtol=0)
    for text, *odds in zip(texts, lent.odds, own.odds, strict=True):
        for rows, of_few, of_enough in zip(owners(text, FEW), *odds, strict=True):
            for entity, row in rows.items():
                assert of_few[2 + row].item() == pytest.approx(of_enough[2 + entity].item(), 1e-9)


@pytest.mark.parametrize("size", [1, 2, 4, 20])
@pytest.mark.parametrize("config", VARIANTS, ids=lambda c: f"{c.variant}-{c.merging}")
def test_whoever_is_lent_a_row_means_what_it_would_mean_in_a_row_of_its_own(
    config: ModelConfig, size: int
) -> None:
    assert any(encoded(CROWD, FEW).loans)

    assert_alike(config, [CROWD], size)


@pytest.mark.parametrize("config", VARIANTS, ids=lambda c: f"{c.variant}-{c.merging}")
def test_documents_that_lend_are_read_beside_others(config: ModelConfig) -> None:
    assert_alike(config, [CROWD[:2], CROWD, [], CROWD[::-1]], 3)


SENTENCE = st.lists(st.sampled_from([1, 2, 3, 4, 5, 6, "met"]), max_size=6).filter(
    lambda tokens: len({t for t in tokens if isinstance(t, int)}) <= FEW
)


@settings(max_examples=40, deadline=None)
@given(st.lists(SENTENCE, min_size=1, max_size=8), st.integers(1, 5))
def test_any_text_reads_alike_with_few_rows_and_with_enough(
    sentences: list[list[Token]], size: int
) -> None:
    assert_alike(VARIANTS[-1], [sentences], size)


def test_gradients_pass_through_a_loan() -> None:
    few, enough = pair(VARIANTS[-1])

    for model, rows in ((few, FEW), (enough, ENOUGH)):
        found = Found(model, [encoded(CROWD, rows)], 4)
        # Where nothing was said before there is no gradient.
        pointed = torch.cat(found.pointed).clamp(min=-100.0)
        assert (pointed > -100).any()
        (found.all().square().sum() + pointed.sum()).backward()  # type: ignore[no-untyped-call]

    for name, parameter in few.named_parameters():
        other = enough.get_parameter(name)
        if other.shape == parameter.shape:
            torch.testing.assert_close(parameter.grad, other.grad, atol=1e-9, rtol=1e-9)


def test_detaching_cuts_off_what_is_kept_aside_too() -> None:
    few, _ = pair(CONFIG)

    state = Found(few, [encoded(CROWD[:6], FEW)], 20).state.detach()

    assert state.kept[0].memories
    assert not any(memory.d.requires_grad for memory in state.kept[0].memories.values())


def test_nobody_is_remembered_twice() -> None:
    few, _ = pair(CONFIG)

    state = Found(few, [encoded(CROWD, FEW)], 2).state

    assert set(state.kept[0].memories) == {1, 4, 5, 6}
    assert state.kept[0].memories[1].d.shape == state.memory.shape[2:]


def test_scores_do_not_depend_on_what_else_is_read() -> None:
    few, _ = pair(VARIANTS[-1])
    model = TextModel(few, Vocabulary(WORDS, entities=FEW))
    texts = [AnonymizedDocument(name="d", sentences=s) for s in (CROWD, CROWD[:3], CROWD[1:])]

    together = list(model.score_all(texts))

    for text, scores in zip(texts, together, strict=True):
        np.testing.assert_allclose(scores, model.score(text), atol=1e-9)
