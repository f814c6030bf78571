import copy
import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from dntm.corpus.entity_slots import encode
from dntm.model.extensions.naming import Naming
from dntm.model.language_model import DynamicTextModel
from dntm.reader.meaning import Meanings, confidence_label, content_words
from dntm.reader.reader import Reader
from dntm.reader.reading import EntityReading
from tests.reader.small import DOCUMENT, PREPARED, VOCABULARY

COMPARED = "sat table river met left old man kept rowed home".split()
"""The content words of the vocabulary."""


def with_naming(reader: Reader, s: float = 6.5) -> Reader:
    """A reader that learned on hidden words; the scale is twice as large at mention 2."""
    model = copy.deepcopy(reader.models.dynamic)
    assert model.x.W_dx is not None
    found = Naming(*model.x.W_dx.shape).double()
    found.load_state_dict({**found.state_dict(), "W": model.x.W_dx.detach()})
    found.s.data.fill_(s)
    found.t.data[1] = math.log(2)
    model.terms["naming"] = found
    return Reader(replace(reader.models, dynamic=model))


def near(table: Tensor, vector: Tensor) -> dict[str, float]:
    """near(e, w) word by word."""
    vectors = {word: table[VOCABULARY.row(word)] for word in COMPARED}
    mean = sum(vectors.values()) / len(COMPARED)
    entities = [table[VOCABULARY.row(entity)] for entity in (1, 2, 3, 4)]

    def cosine(one: Tensor, other: Tensor) -> float:
        return float(torch.cosine_similarity(one - mean, other - mean, dim=0))

    return {
        word: cosine(vector, other) - sum(cosine(row, other) for row in entities) / 4
        for word, other in vectors.items()
    }


def softmax(logits: dict[str, float]) -> dict[str, float]:
    total = sum(map(math.exp, logits.values()))
    return {word: math.exp(logit) / total for word, logit in logits.items()}


def d_of(state: EntityReading) -> Tensor:
    return torch.tensor(state.representation, dtype=torch.float64)


def x_of(model: DynamicTextModel, entity: int, d: Tensor) -> Tensor:
    """Eq. 9."""
    x = model.x.weight[VOCABULARY.entity_row(entity)]
    return x if model.x.W_dx is None else x + model.x.W_dx @ d


def y_of(model: DynamicTextModel, entity: int, d: Tensor) -> Tensor:
    """Eq. 10."""
    y = model.output.weight[VOCABULARY.entity_row(entity)]
    return y if model.W_dy is None else y + model.W_dy @ d


def test_representations_equal_those_of_the_model(reader: Reader) -> None:
    model = reader.models.dynamic
    rows = [encode(DOCUMENT, VOCABULARY).sentences]
    _, after = model.score(model.plan(rows), model.initial_state(1))

    trail = reader.read(PREPARED).trail(2)

    assert [index for index, _ in trail] == [0, 2, 3]
    assert trail[-1][1].representation == pytest.approx(after.memory.d[0, 1].tolist(), abs=1e-12)
    assert trail[-1][1].occurrence == 3


def test_nearest_words_follow_their_formula(reader: Reader) -> None:
    model = reader.models.dynamic
    index, state = reader.read(PREPARED).trail(1)[1]

    for table, vector, found in (
        (model.x.weight, x_of(model, 1, d_of(state)), state.input_words),
        (model.output.weight, y_of(model, 1, d_of(state)), state.output_words),
    ):
        nearness = near(table, vector)
        expected = sorted(nearness, key=lambda word: -nearness[word])[:8]

        assert index == 1
        assert [n.word for n in found] == expected
        assert [n.similarity for n in found] == pytest.approx([nearness[w] for w in expected])


def test_a_word_near_to_every_entity_does_not_win(reader: Reader) -> None:
    model = copy.deepcopy(reader.models.dynamic)
    rows = [VOCABULARY.entity_row(entity) for entity in (1, 2, 3, 4)]
    with torch.no_grad():
        common = model.x.weight[rows].mean(0)
        model.x.weight[rows] = common + 0.2 * (model.x.weight[rows] - common)
        model.x.weight[VOCABULARY.row("river")] = common
    d = torch.full((4, 7), 0.03, dtype=torch.float64)

    entities = [
        EntityReading(entity=e, name="", occurrence=1, row=e, representation=())
        for e in range(1, 5)
    ]
    found = Meanings(model, VOCABULARY).describe(entities, d)

    vectors = model.x.weight[[VOCABULARY.row(word) for word in COMPARED]]
    for entity, meaning in enumerate(found, start=1):
        x = x_of(model, entity, d[0])
        assert COMPARED[int(torch.cosine_similarity(vectors, x, dim=1).argmax())] == "river"
        assert meaning.input_words[0].word != "river"


def test_predicted_words_follow_their_formula(reader: Reader) -> None:
    named = with_naming(reader)
    model = named.models.dynamic
    _, state = named.read(PREPARED).trail(2)[1]

    read = encode(DOCUMENT, VOCABULARY).sentences
    left = [word for word in COMPARED if VOCABULARY.row(word) not in {*read[0], *read[2]}]
    assert model.x.W_dx is not None
    x = model.x.W_dx @ d_of(state)
    expected = softmax({
        word: 13 * float(torch.cosine_similarity(x, model.x.weight[VOCABULARY.row(word)], dim=0))
        for word in left
    })  # fmt: skip
    order = sorted(left, key=lambda word: -expected[word])[:8]

    assert [n.word for n in state.predicted_words] == order
    assert [n.probability for n in state.predicted_words] == pytest.approx(
        [expected[w] for w in order], rel=1e-4
    )
    assert state.confidence == pytest.approx(sum(expected[word] for word in order[:3]), rel=1e-4)


def test_words_of_its_own_sentences_are_not_predicted(reader: Reader) -> None:
    zork = with_naming(reader).read("Ann met a zork. The zork rowed home.").trail("zork")[-1][1]

    predicted = {near.word for near in zork.predicted_words}

    assert predicted == {*COMPARED} - {"met", "rowed", "home"}


def test_words_that_say_what_it_is_can_be_predicted(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dntm.reader.meaning._SAYING", frozenset({"met"}))
    meanings = Meanings(reader.models.dynamic, VOCABULARY)
    met, man, zork = VOCABULARY.row("met"), VOCABULARY.row("man"), VOCABULARY.entity_row(1)

    assert meanings.own_words([zork, 0, met, man], 1) == frozenset()
    assert meanings.own_words([zork, 0, 0, met, man], 1) >= {met, man}


def test_predicted_words_are_the_same_when_a_stream_continues(reader: Reader) -> None:
    named = with_naming(reader)
    texts = "Ann met Bo. The river left Ann.", "Ann met Bo. The river left Ann. Bo met Ann at home."

    known = list(named.stream(texts[0]))
    went_on = list(named.stream(texts[1], known=known))
    at_once = named.read(texts[1]).sentences

    said, expected = (
        [near for sentence in read for e in sentence.entities for near in e.predicted_words]
        for read in (went_on, at_once)
    )
    assert said
    assert [near.word for near in said] == [near.word for near in expected]
    assert [near.probability for near in said] == pytest.approx(
        [near.probability for near in expected], rel=1e-4
    )


def test_a_model_not_trained_on_hidden_words_has_no_confidence(reader: Reader) -> None:
    _, state = reader.read(PREPARED).trail(2)[1]

    assert [n.word for n in state.predicted_words] == [n.word for n in state.input_words]
    assert state.confidence is None
    assert confidence_label(state.confidence) == ""


@pytest.mark.parametrize(
    ("probability", "label"),
    [(0.6, "high confidence"), (0.59, "medium confidence"), (0.29, "low confidence")],
)
def test_confidence_has_three_labels(probability: float, label: str) -> None:
    assert confidence_label(probability) == label


def test_function_words_are_left_out() -> None:
    words = "the Dog dog horse he twenty 1911 b52 , n't x china China was very Éire".split()

    assert [words[place] for place in content_words(words)] == ["dog", "horse", "china", "Éire"]
