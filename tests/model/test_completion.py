"""Completion against the naive way: put each candidate in the gap and score the whole text."""

from collections.abc import Sequence

import numpy as np
import pytest

from dntm.corpus.document import AnonymizedDocument, Gap, Token
from dntm.corpus.entity_slots import encode
from dntm.corpus.vocabulary import Vocabulary
from dntm.model import scorer
from dntm.model.config import Extension, Variant
from dntm.model.language_model import DynamicTextModel
from dntm.model.scorer import Scorer
from tests.model.small import ALL_EXTENSIONS, CORES, build

VOCABULARY = Vocabulary(tuple("abcdef"), entities=3)
# Entities that never return, a sentence with several gaps, one without, an empty sentence, more
# entities than slots, a document without gaps and an empty one.
LONG: list[list[Token]] = [
    ["a", 1, "b", 2],
    [2, "c", 1, "d", 1, "a"],
    ["e", "f"],
    [3, 1],
    [],
    ["a", 2, "b", "c", 4, "f", "zzz"],
    [1],
    ["b", "c", 3, "d", 2],
    [5, "a", 4],
]
SENTENCES: list[list[list[Token]]] = [
    LONG, [["a"], [1, "b"]], [], LONG[1:5], [[1, 2], [2, 1, "a"]]
]  # fmt: skip
TEXTS = [AnonymizedDocument(name="", sentences=sentences) for sentences in SENTENCES]


def gaps_of(document: AnonymizedDocument) -> list[Gap]:
    """Every mention after the first sentence; candidates are all entities known by then."""
    found, known = list[Gap](), tuple[int, ...]()
    for s, sentence in enumerate(document.sentences):
        mentions = [(p, t) for p, t in enumerate(sentence) if isinstance(t, int)]
        found += [Gap(s, p, e, 1, known) for p, e in mentions if known]
        known = tuple(sorted({*known, *(entity for _, entity in mentions)}))
    return found


def by_hand(model: DynamicTextModel, document: AnonymizedDocument) -> list[tuple[float, float]]:
    """Log-probabilities of each candidate and of the rest of its sentence."""
    copies, positions = [], []
    for gap in gaps_of(document):
        sentences = document.sentences[: gap.sentence + 1]
        for candidate in gap.candidates:
            last = [*sentences[-1]]
            last[gap.position] = candidate
            # The last sentence only makes the copy evict like the document; it is not scored.
            copy = [*sentences[:-1], last, [document.largest]]
            copies.append(AnonymizedDocument(name="", sentences=copy))
            positions.append(gap.position - len(last) - 1)
    scores = (log_p[:-2] for log_p in Scorer(model, VOCABULARY).score(copies))
    return [(log_p[g], log_p[g:][1:].sum()) for log_p, g in zip(scores, positions, strict=True)]


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    ("variant", "extensions"),
    [
        ("input", ()),
        ("output", ()),
        ("both", ()),
        ("baseline", ALL_EXTENSIONS["baseline"]),
        ("both", ALL_EXTENSIONS["both"]),
    ],
)
def test_likelihoods_are_those_of_the_text_with_each_candidate(
    core: str, variant: Variant, extensions: Sequence[Extension], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any(encode(TEXTS[0], VOCABULARY).evictions), "the text has more entities than slots"
    model = build(variant, "gru-relu", extensions, core=core)
    expected = [by_hand(model, document) for document in TEXTS]
    monkeypatch.setattr(scorer, "TOKENS", 20)
    monkeypatch.setattr(scorer, "BATCH", 2)

    found = Scorer(model, VOCABULARY).complete((text, gaps_of(text)) for text in TEXTS)

    assert [len(pairs) > 0 for pairs in expected] == [True, False, False, True, True]
    for values, pairs in zip(found, expected, strict=True):
        both = np.array(pairs).reshape(-1, 2).T
        np.testing.assert_allclose(np.stack(values), both, atol=1e-11, rtol=0)
