from pathlib import Path

import pytest
import torch
from torch import Tensor

from dntm.model.config import Variant
from dntm.reader.reader import Reader
from tests.reader.small import (
    DOCUMENT,
    VOCABULARY,
    checkpoint,
    static_surprisals,
    surprisals,
)

COMPARED = "sat table river met left old man She kept rowed home He Old".split()
"""The words of the vocabulary that are no closed class."""


def cosines(table: Tensor, vector: Tensor) -> dict[str, float]:
    """How near each of the words is to a vector, their mean taken off."""
    vectors = {word: table[VOCABULARY.row(word)] for word in COMPARED}
    mean = sum(vectors.values()) / len(COMPARED)
    return {
        word: float(torch.cosine_similarity(vector - mean, other - mean, dim=0))
        for word, other in vectors.items()
    }


def test_a_representation_is_the_models_own(reader: Reader) -> None:
    model = reader.models.dynamic
    rows = [[VOCABULARY.encode(sentence) for sentence in DOCUMENT.sentences]]
    _, after = model.score(model.plan(rows), model.initial_state(1))

    trail = reader.read(DOCUMENT).trail(2)

    assert [index for index, _ in trail] == [0, 2, 3]
    assert trail[-1][1].representation == pytest.approx(after.memory[0, 1].tolist(), abs=1e-12)
    assert trail[-1][1].occurrence == 3


def test_nearest_words_are_those_of_highest_cosine(reader: Reader) -> None:
    model = reader.models.dynamic
    index, state = reader.read(DOCUMENT).trail(1)[1]
    d = torch.tensor(state.representation, dtype=torch.float64)

    for table, vector, found in (
        (model.x.weight, model.input_embedding(1, d), state.input_words),
        (model.output.y.weight, model.output_embedding(1, d), state.output_words),
    ):
        near = cosines(table, vector)
        expected = sorted(near, key=lambda word: -near[word])[:8]

        assert index == 1
        assert [n.word for n in found] == expected
        assert [n.similarity for n in found] == pytest.approx([near[w] for w in expected])


@pytest.mark.parametrize("variant", ["input", "output", "both"])
def test_gained_and_lost_words_are_those_the_sentence_changed_most_of_all(
    tmp_path: Path, variant: Variant
) -> None:
    reader = Reader.from_pretrained(checkpoint(tmp_path / "model", variant))
    model = reader.models.dynamic
    (_, before), (_, after) = reader.read(DOCUMENT).trail(1)[:2]

    then, now = (
        cosines(model.output.y.weight, model.output_embedding(1, d))
        if variant == "output"
        else cosines(model.x.weight, model.input_embedding(1, d))
        for d in (torch.tensor(s.representation, dtype=torch.float64) for s in (before, after))
    )
    change = {word: now[word] - then[word] for word in COMPARED}
    gained = sorted((w for w in COMPARED if change[w] > 0), key=lambda w: -change[w])[:8]
    lost = sorted((w for w in COMPARED if change[w] < 0), key=lambda w: change[w])[:8]

    assert len(gained) + len(lost) > 8
    for found, expected in ((after.gained, gained), (after.lost, lost)):
        assert [n.word for n in found] == expected
        assert [n.change for n in found] == pytest.approx([change[w] for w in expected])
        assert [n.similarity for n in found] == pytest.approx([now[w] for w in expected])


def test_a_baseline_alone_has_no_representations(tmp_path: Path) -> None:
    reader = Reader.from_pretrained(checkpoint(tmp_path / "a", "baseline"))

    reading = reader.read(DOCUMENT)

    assert surprisals(reading) == static_surprisals(reading)
    state = reading.trail(1)[0][1]
    assert (list(state.representation), list(state.gained), state.change) == ([], [], 0.0)
