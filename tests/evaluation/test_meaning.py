"""The evaluation of meaning against plain loops, and on models with known answers."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import Tensor

from dntm.corpus.document import AnonymizedDocument
from dntm.evaluation import meaning
from dntm.evaluation.meaning import (
    Trials,
    candidate_words,
    definitions,
    hidden_words,
    pairs,
    predict,
    spearman,
    trials,
)
from dntm.evaluation.passages import Passage, Trial, gap_passage, hide_words, passage_of
from dntm.evaluation.word_baselines import fit_context_baselines
from dntm.model.config import ModelConfig
from dntm.model.extensions.naming import nameable
from dntm.model.language_model import DynamicTextModel, score_block
from dntm.model.scorer import Scorer
from tests.evaluation.small_passages import (
    DIM,
    FIRST,
    LEXICON,
    PASSAGES,
    SENTENCES,
    TEXT,
    VOCABULARY,
    encoded,
    random_model,
    row,
)


def model_that_says(word: str) -> Scorer:
    """A model for which every entity is, after any mention, a certain word in x; -x in y."""
    config = ModelConfig(
        vocabulary=len(VOCABULARY), entities=4, variant="both", merging="latest",
        embedding_dim=DIM, hidden_dim=DIM, encoder_dim=3, context_dim=2 * DIM,
    )  # fmt: skip
    model = DynamicTextModel(config).eval()
    assert model.memory.encoder is not None
    assert model.x.W_dx is not None
    assert model.W_dy is not None
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        x = torch.randn(len(VOCABULARY), DIM, generator=torch.Generator().manual_seed(5))
        x[3:FIRST] = 0
        model.x.weight.copy_(x)
        model.output.weight.copy_(x)
        # d' = ReLU(b_d) holds the positive numbers of x_w, and behind them the negative ones.
        model.memory.encoder.b_d.copy_(torch.cat((x[row(word)], -x[row(word)])))
        back = torch.cat((torch.eye(DIM), -torch.eye(DIM)), 1)
        model.x.W_dx.copy_(back)
        model.W_dy.copy_(-back)
    return Scorer(model, VOCABULARY)


def cos(a: Tensor, b: Tensor) -> float:
    return float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))


def plain_rank(guess: Tensor, words: Tensor, answer: int) -> int:
    right = cos(guess, words[answer])
    return sum(cos(guess, w) >= right - 1e-7 for w in words)


def test_embeddings_after_each_mention_are_those_before_the_next_sentence() -> None:
    model = random_model()
    document = encoded([["the", 1 + n % 3, "met", "it"] for n in range(47)])

    (found, short) = model.mention_embeddings([document, document[:5]])

    window = model.model.plan([[*document, *encoded([["it"]])]], every_context=True)
    known = score_block(model.model, window, model.model.initial_state(1)).begins
    assert found.row.tolist() == [3 + n % 3 for n in range(47)]
    for n, entity in enumerate(found.row.tolist()):
        d = known[n + 1, entity - 3].unsqueeze(0)
        x = model.model.x.entity(torch.tensor([entity]), d)[0]
        y = model.model.y_entity(torch.tensor([entity]), d)[0]
        torch.testing.assert_close(found.x[n], x, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(found.y[n], y, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(short.x, found.x[:5], atol=1e-5, rtol=1e-4)


def test_a_baseline_has_no_meanings_to_tell() -> None:
    with pytest.raises(ValueError, match="the model is a baseline"):
        next(random_model("baseline").mention_embeddings([]))


PART = AnonymizedDocument(name="part", sentences=SENTENCES)


def ranks(model: Scorer, passages: list[Passage], candidates: np.ndarray) -> meaning.HiddenWords:
    return hidden_words(passages, predict(model, passages, {}), candidates)


def test_spearman_is_that_of_scipy() -> None:
    random = np.random.default_rng(4)
    for _ in range(20):
        a, b = random.integers(0, 5, 12).astype(float), random.standard_normal(12).round(1)
        assert spearman(a, b) == pytest.approx(spearmanr(a, b).statistic)
    assert spearman(np.ones(3), np.arange(3.0)) == 0


def test_candidates_are_frequent_words_and_closed_classes_are_never_hidden() -> None:
    rows, hidden = candidate_words(random_model(), 6)

    assert " ".join(map(VOCABULARY.label, rows.tolist())) == "at and dog cat wolf barked"
    found = map(VOCABULARY.label, np.nonzero(hidden)[0].tolist())
    assert " ".join(found) == "dog cat wolf barked"


def test_a_model_that_says_dog_has_rank_1_where_a_dog_was_hidden() -> None:
    model = model_that_says("dog")
    candidates, _ = candidate_words(model, 10)
    passages = [passage_of(PART, {word: row(word)}, VOCABULARY) for word in ("dog", "cat")]

    found = ranks(model, passages, candidates)

    x = model.model.x.weight.detach()[torch.from_numpy(candidates)]
    dog, cat = (int(np.nonzero(candidates == row(word))[0][0]) for word in ("dog", "cat"))
    nearer = plain_rank(x[dog], x, cat)
    farther = [plain_rank(-x[dog], x, answer) for answer in (dog, cat)]
    assert (found.parts, found.words, found.mentions, found.candidates) == (2, 2, 9, 10)
    assert nearer > 1
    for name, cases in (("1", 2), ("2", 2), ("4", 2), ("2+", 7)):
        by_x, by_y = found.ranks["x"][name], found.ranks["y"][name]
        assert by_x.cases == by_y.cases == cases
        if name != "2+":
            assert by_x.recall == {1: 0.5, 10: 1.0, 100: 1.0}
            assert by_x.reciprocal_rank == pytest.approx((1 + 1 / nearer) / 2)
            assert by_x.median_rank == (1 + nearer) / 2
            assert by_y.median_rank == sum(farther) / 2
    assert "8" not in found.ranks["x"]
    # Four mentions of the dog, five of the cat: three and four from the second on.
    assert found.ranks["x"]["2+"].recall[1] == pytest.approx(3 / 7)
    assert found.ranks["x"]["2+ of 1-1000"] == found.ranks["x"]["2+"]
    frequent = found.ranks["most frequent"]["2+"]
    assert frequent.reciprocal_rank == pytest.approx((3 / (dog + 1) + 4 / (cat + 1)) / 7)


def test_ranks_after_each_mention_are_those_of_the_embeddings_after_it() -> None:
    model = random_model()
    candidates, hidden = candidate_words(model, 10)
    passages = list(hide_words([PART] * 40, hidden, VOCABULARY, most=3, seed=0))

    found = ranks(model, passages, candidates)

    expected: dict[int, list[int]] = {}
    x = model.model.x.weight.detach()[torch.from_numpy(candidates)]
    for passage in passages:
        (read,) = model.mention_embeddings([passage.sentences])
        seen: dict[int, int] = {}
        for entity, x_e in zip(read.row.tolist(), read.x, strict=True):
            seen[entity] = seen.get(entity, 0) + 1
            answer = int(np.nonzero(candidates == passage.hidden[entity])[0][0])
            expected.setdefault(seen[entity], []).append(plain_rank(x_e, x, answer))
    for count in (1, 2, 4):
        summary = found.ranks["x"][str(count)]
        assert summary.cases == len(expected[count])
        assert summary.median_rank == np.median(expected[count])
    later = [rank for count, of_count in expected.items() if count > 1 for rank in of_count]
    assert found.ranks["x"]["2+"].reciprocal_rank == pytest.approx(np.mean(1 / np.array(later)))


def test_vectors_that_are_not_finite_are_an_error() -> None:
    model = model_that_says("dog")
    with torch.no_grad():
        model.model.x.weight[3] = torch.nan

    with pytest.raises(ValueError, match="not finite"):
        predict(model, PASSAGES, {})


def test_definitions_are_ranked_among_all_words_that_can_be_named() -> None:
    model = model_that_says("dog")
    given = [
        ("Dog", "A ___ barked."),
        ("cat", "___ , the cat"),
        ("zork", "the ___"),
        ("17", "the ___"),
        ("wolf", "it howled"),
    ]

    found = definitions(model, given, {})

    rows = np.nonzero(nameable(VOCABULARY))[0].tolist()
    x = model.model.x.weight.detach()[rows]
    dog, cat = (rows.index(row(word)) for word in ("dog", "cat"))
    nearer = plain_rank(x[dog], x, cat)
    assert (found.words, found.unknown, found.without_gap) == (2, 2, 1)
    assert found.candidates == len(rows) == 12
    assert found.ranks["x"].median_rank == (1 + nearer) / 2
    assert found.ranks["most frequent"].median_rank == (dog + cat) / 2 + 1


def rated(group: str, probes: str, ratings: Sequence[float], text: str = "a ___ ran") -> Trial:
    return Trial(group, [text, "the ___ ."], probes.split(), ratings)


def test_trials_correlate_ratings_with_cosines() -> None:
    model = model_that_says("dog")
    x = model.model.x.weight.detach()
    probes = "dog cat wolf barked it"
    near = [cos(x[row("dog")], x[row(probe)]) for probe in probes.split()]
    ratings = [5.0, 1.0, 4.0, 2.0, 2.0]

    found = trials(model, [rated("a", probes, near), rated("b", probes, ratings)], {})

    expected = spearmanr(near, ratings).statistic
    assert found.correlations["x"].mean == pytest.approx((1 + expected) / 2)
    assert found.correlations["y"].mean == pytest.approx(-(1 + expected) / 2)
    assert (found.trials, found.words, found.unknown_probes) == (2, 2, 0)


def test_unknown_probes_say_nothing_and_uninformative_trials_count_as_0() -> None:
    model = model_that_says("dog")
    x = model.model.x.weight.detach()
    near = [cos(x[row("dog")], x[row(probe)]) for probe in ("dog", "cat")]
    given = [
        rated("a", "dog zork cat", [3.0, 1.0, 2.0]),
        rated("b", "dog zork gork", [3.0, 1.0, 2.0]),
        rated("c", "dog cat", [2.0, 2.0]),
        Trial("d", ["it ran"], ["dog", "cat"], [2.0, 1.0]),
    ]

    found = trials(model, given, {})

    expected = spearmanr([near[0], sum(near) / 2, near[1]], [3, 1, 2]).statistic
    assert found.correlations["x"].mean == pytest.approx(expected / 4)
    assert (found.few_probes, found.constant, found.without_gap) == (1, 1, 1)
    assert found.unknown_probes == 3 / 10


def interval(groups: str) -> tuple[float, float]:
    model = model_that_says("dog")
    x = model.model.x.weight.detach()
    probes = "dog cat wolf"
    near = np.array([cos(x[row("dog")], x[row(probe)]) for probe in probes.split()])
    given = [rated(g, probes, (near if g.isupper() else -near).tolist()) for g in groups]
    found: Trials = trials(model, given, {})
    assert found.correlations["x"].mean == pytest.approx(0)
    return found.correlations["x"].interval


def test_what_is_resampled_are_invented_words_not_trials() -> None:
    """Four trials of one word and four of another: as unsure as two trials, not as eight."""
    assert interval("AAAAbbbb") == pytest.approx((-1, 1))
    low, high = interval("ABCDefgh")
    assert -0.8 < low < -0.4 < 0.4 < high < 0.8


def test_trials_correlate_the_vectors_of_baselines_too() -> None:
    model = random_model()
    texts = ["the ___ barked at it", "a ___ ran and the dog howled ."]
    given = Trial("a", texts, ["dog", "cat", "it", "ran"], [1.0, 2.0, 3.0, 4.0])
    bag, _ = fit_context_baselines([TEXT], model)
    passage = gap_passage(texts, LEXICON)
    assert passage is not None

    found = trials(model, [given], {"bag": bag})

    near = [cos(bag([passage])[1], bag.words[row(probe)]) for probe in given.probes]
    expected = spearmanr(near, given.ratings).statistic
    assert found.correlations["bag"].mean == pytest.approx(expected)


def test_pairs_correlate_similarities_with_the_cosines_of_both_tables() -> None:
    model = random_model()
    given = [("dog", "cat", 3.0), ("Dog", "wolf", 4.0), ("it", "ran", 1.0), ("the", "cat", 1.0)]

    found = pairs(model, [*given, ("dog", "zork", 9.0)])

    ratings = [rating for _, _, rating in given]
    tables = (model.model.x.weight.detach(), model.model.output.weight.detach())
    for table, value in zip(tables, (found.x, found.y), strict=True):
        near = [cos(table[row(a.lower())], table[row(b)]) for a, b, _ in given]
        assert value == pytest.approx(spearmanr(near, ratings).statistic)
    assert (found.pairs, found.left_out) == (4, 1)


def test_pairs_outside_the_vocabulary_alone_are_an_error() -> None:
    with pytest.raises(ValueError, match="1 word pairs in the vocabulary"):
        pairs(random_model(), [("dog", "cat", 1.0), ("dog", "zork", 2.0)])
