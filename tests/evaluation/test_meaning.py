"""The evaluation of meaning against plain loops, and on models with known answers."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import Tensor

from dntm.evaluation import meaning
from dntm.evaluation.passages import Passage, Trial, gap_passage
from dntm.evaluation.ranks import Ranked
from dntm.evaluation.word_baselines import bag_of_words
from dntm.model.config import ModelConfig
from dntm.model.extensions.naming import Naming
from dntm.model.language_model import DynamicTextModel
from dntm.model.scorer import Scorer
from dntm.reader.meaning import Meanings, content_words
from dntm.reader.reading import EntityReading
from tests.evaluation.small_passages import (
    DIM,
    FIRST,
    LEXICON,
    PASSAGES,
    VOCABULARY,
    WORDS,
    passage,
    random_model,
    row,
)
from tests.evaluation.test_ranks import cos, plain_rank

CANDIDATES = np.array([*content_words(WORDS)]) + FIRST


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


def test_words_are_ranked_as_readers_see_them() -> None:
    model = random_model(extensions=("naming",))
    predictor = meaning.Predictor(model, {})
    assert predictor.naming is not None
    assert predictor.naming.W is not None
    with torch.no_grad():
        predictor.naming.t[1] = 0.5
        torch.nn.init.normal_(predictor.naming.W, generator=torch.Generator().manual_seed(3))
    d = torch.randn(2, 4, generator=torch.Generator().manual_seed(8))
    entities = [
        EntityReading(entity=e, name="", occurrence=e, row=e, representation=()) for e in (1, 2)
    ]

    read = Meanings(model.model, VOCABULARY).describe(entities, d)

    for entity, x in zip(read, predictor.naming.named(d), strict=True):
        rows = np.array([row(near.word) for near in entity.predicted_words])
        mentions = np.full(len(rows), entity.occurrence)
        ranked = predictor.ranks("model", x.expand(len(rows), -1), CANDIDATES, rows, mentions)
        assert ranked.rank.tolist() == list(range(1, len(rows) + 1))
        assert ranked.confidence[0] == pytest.approx(entity.predicted_words[0].probability)


def test_the_context_encoder_alone_is_a_model_that_merges_by_the_mean() -> None:
    model = random_model()
    config = ModelConfig(
        vocabulary=len(VOCABULARY), entities=4, variant="both", merging="mean",
        embedding_dim=DIM, hidden_dim=6, encoder_dim=3, context_dim=4,
    )  # fmt: skip
    mean = DynamicTextModel(config).eval()
    mean.load_state_dict(model.model.state_dict(), strict=False)

    found = meaning.Predictor(model, {}).vectors(PASSAGES)

    for name, by in (("context encoder", Scorer(mean, VOCABULARY)), ("model", model)):
        embeddings = by.mention_embeddings([p.sentences for p in PASSAGES])
        expected = torch.cat([e.x[torch.from_numpy(e.row == 3)] for e in embeddings])
        torch.testing.assert_close(found[name], expected)


def test_static_input_and_vectors_that_are_not_finite_are_errors() -> None:
    model = model_that_says("dog")
    with torch.no_grad():
        model.model.x.weight[3] = torch.nan

    with pytest.raises(ValueError, match="not finite"):
        meaning.Predictor(model, {}).vectors(PASSAGES)
    with pytest.raises(ValueError, match="the variant 'output'"):
        meaning.Predictor(random_model("output"), {})


def test_words_to_hide_are_parted_by_frequency_and_by_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dntm.evaluation.meaning.BANDS", ((1, 7), (8, 14)))
    monkeypatch.setattr("dntm.model.extensions.naming.FREQUENT", 7)

    groups = meaning.type_groups(VOCABULARY, np.arange(FIRST, len(VOCABULARY)))

    words = {group: [VOCABULARY.label(r) for r in rows] for group, rows in groups.items()}
    assert words == {
        "1-7": [*WORDS[:7]],
        "1-7, never hidden in training": [],
        "8-14": [*WORDS[8:14]],
        "8-14, never hidden in training": [WORDS[7]],
    }


class Told(meaning.Predictor):
    """Ranks and confidences that are given."""

    def __init__(self, rank: Sequence[int], confidence: Sequence[float]) -> None:
        self.words, self.naming, self.first = {"model": torch.zeros(1, 1)}, Naming(), FIRST
        self.told = Ranked(np.array(rank), np.array(confidence))

    def vectors(self, passages: Sequence[Passage]) -> dict[str, Tensor]:
        return {"model": torch.zeros(sum(len(p.mentions()) for p in passages), 1)}

    def ranks(self, *_: object) -> Ranked:
        return self.told


def test_ranks_are_reported_by_group_and_number_of_mentions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dntm.evaluation.meaning.BANDS", ((1, 5), (6, 20)))
    six, two = passage(*["the 1 ran"] * 6), passage("the 1 ran", "a 1 ran")
    the = Passage(two.sentences, 3, row("the"))
    rank = [1, 1] + [40, 30, 20, 9, 9, 1] + [12, 11]
    confidence = [0.9, 0.1] + [0.1, 0.2, 0.1, 0.05, 0.9, 1.0] + [0.3, 0.05]
    groups = {"1-5": [the], "6-20": [six], "held": [two]}

    found = meaning.hidden_words(Told(rank, confidence), groups, CANDIDATES)

    own = found["ranks"]["6-20"]["model"]
    assert {n: s.median_rank for n, s in own.items()} == {1: 40, 2: 30, 4: 9, 6: 1}
    assert own[4].recall == {1: 0, 10: 1, 100: 1}
    assert found["ranks"]["all"]["model"][1].median_rank == 26
    assert found["ranks"]["all"]["model"][2].cases == 2
    assert found["ranks"]["all with 6 mentions"]["model"] == own
    assert list(found["ranks"]["held"]["model"]) == [1, 2]
    assert {n: c["cases"] for n, c in found["calibration"].items()} == {1: 2, 2: 2, 4: 1, 6: 1}


def test_calibration_compares_confidence_with_accuracy_in_bins() -> None:
    confidence = np.array([0.12, 0.18, 0.91, 1.0])

    found = meaning.calibration(confidence, np.array([True, False, True, True]))

    assert [own[1:] for own in found["bins"]] == [(0.5, 2), (1.0, 2)]
    assert [own[0] for own in found["bins"]] == pytest.approx([0.15, 0.955])
    assert found["error"] == pytest.approx((2 * 0.35 + 2 * 0.045) / 4)


def test_spearman_is_that_of_scipy() -> None:
    random = np.random.default_rng(4)
    for _ in range(20):
        a, b = random.integers(0, 5, 12).astype(float), random.standard_normal(12).round(1)
        assert meaning.spearman(a, b) == pytest.approx(spearmanr(a, b).statistic)
    assert meaning.spearman(np.ones(3), np.arange(3.0)) == 0


def test_definitions_are_ranked_among_all_candidates() -> None:
    model = model_that_says("dog")
    given = [
        ("Dog", "A ___ barked."),
        ("cat", "___ , the cat"),
        ("zork", "the ___"),
        ("17", "the ___"),
        ("wolf", "it howled"),
    ]

    found = meaning.definitions(meaning.Predictor(model, {}), LEXICON, given, CANDIDATES)

    rows = CANDIDATES.tolist()
    x = model.model.x.weight.detach()[rows]
    dog, cat = (rows.index(row(word)) for word in ("dog", "cat"))
    nearer = plain_rank(x[dog], x, cat)
    assert (found["words"], found["unknown"], found["without_gap"]) == (2, 2, 1)
    assert found["candidates"] == len(rows)
    assert nearer > 1
    assert found["ranks"]["model"].median_rank == (1 + nearer) / 2
    assert found["ranks"]["context encoder"] == found["ranks"]["model"]


def rated(group: str, probes: str, ratings: Sequence[float], text: str = "a ___ ran") -> Trial:
    return Trial(group, [text, "the ___ ."], probes.split(), ratings)


def test_trials_correlate_ratings_with_cosines() -> None:
    model = model_that_says("dog")
    x = model.model.x.weight.detach()
    probes = "dog cat wolf barked it"
    near = [cos(x[row("dog")], x[row(probe)]) for probe in probes.split()]
    ratings = [5.0, 1.0, 4.0, 2.0, 2.0]

    given = [rated("a", probes, near), rated("b", probes, ratings)]
    bag = bag_of_words(model)
    found = meaning.trials(meaning.Predictor(model, {"bag": bag}), LEXICON, given)

    expected = spearmanr(near, ratings).statistic
    assert found["correlations"]["model"][0] == pytest.approx((1 + expected) / 2)
    read = gap_passage(given[0].texts, LEXICON)
    assert read is not None
    by_bag = [cos(bag(read)[1], bag.words[row(probe)]) for probe in probes.split()]
    expected = sum(spearmanr(by_bag, trial.ratings).statistic for trial in given) / 2
    assert found["correlations"]["bag"][0] == pytest.approx(expected)
    assert (found["trials"], found["words"], found["unknown_probes"]) == (2, 2, 0)


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

    found = meaning.trials(meaning.Predictor(model, {}), LEXICON, given)

    expected = spearmanr([near[0], sum(near) / 2, near[1]], [3, 1, 2]).statistic
    assert found["correlations"]["model"][0] == pytest.approx(expected / 4)
    assert (found["few_probes"], found["constant"], found["without_gap"]) == (1, 1, 1)
    assert found["unknown_probes"] == 3 / 10


def interval(groups: str) -> tuple[float, float]:
    model = model_that_says("dog")
    x = model.model.x.weight.detach()
    probes = "dog cat wolf"
    near = np.array([cos(x[row("dog")], x[row(probe)]) for probe in probes.split()])
    given = [rated(g, probes, (near if g.isupper() else -near).tolist()) for g in groups]
    found = meaning.trials(meaning.Predictor(model, {}), LEXICON, given)
    assert found["correlations"]["model"][0] == pytest.approx(0)
    low, high = found["correlations"]["model"][1]
    return low, high


def test_what_is_resampled_are_invented_words_not_trials() -> None:
    """Four trials of one word and four of another: as unsure as two trials, not as eight."""
    assert interval("AAAAbbbb") == pytest.approx((-1, 1))
    low, high = interval("ABCDefgh")
    assert -0.8 < low < -0.4 < 0.4 < high < 0.8


def test_pairs_correlate_similarities_with_the_cosines_of_both_tables() -> None:
    model = random_model()
    given = [("dog", "cat", 3.0), ("Dog", "wolf", 4.0), ("it", "ran", 1.0), ("the", "cat", 1.0)]

    found = meaning.pairs(model, [*given, ("dog", "zork", 9.0)])

    ratings = [rating for _, _, rating in given]
    tables = (model.model.x.weight.detach(), model.model.output.weight.detach())
    for table, value in zip(tables, (found["x"], found["y"]), strict=True):
        near = [cos(table[row(a.lower())], table[row(b)]) for a, b, _ in given]
        assert value == pytest.approx(spearmanr(near, ratings).statistic)
    assert (found["pairs"], found["left_out"]) == (4, 1)
    with pytest.raises(ValueError, match="1 word pairs in the vocabulary"):
        meaning.pairs(model, [("dog", "cat", 1.0), ("dog", "zork", 2.0)])
