"""The cache against a plain loop over what a document has said."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.rows import encode
from dntm.corpus.vocabulary import Vocabulary
from dntm.model import history
from dntm.model.cache import Cache, OwnCache, best_weight
from dntm.model.checkpoint import save_pretrained
from dntm.model.fast.window import windows
from dntm.model.language_model import DynamicTextModel
from dntm.model.text_model import TextModel
from tests.model.small import BOS, EOS, A, B, C, assert_begun_as_whole, assert_distributions, build

CACHE = Cache(theta=0.7, weight=0.3)
OWN = OwnCache(theta=0.7, weight=0.3, kappa=1.5)
VOCABULARY = Vocabulary(("a", "b", "c", "d", "e", "f"), entities=3)
DOCUMENTS = [
    [[BOS, A, 7, 7, EOS], [BOS, 8, A, B, 9, EOS], [BOS, A, A, 7, EOS]],
    [[BOS, 11, C, 10, EOS]],
    [[BOS, 7, 8, EOS], [BOS, 9, B, A, EOS], [BOS, B, EOS], [BOS, 6, A, B, 7, 8, EOS]],
]


def by_loop(model: DynamicTextModel, document: list[list[int]], cache: Cache) -> list[float]:
    """The mixture's log-probability of every token, a position at a time."""
    assert model.cache is None
    state = model.initial_state(1)
    said: list[tuple[torch.Tensor, int, int]] = []
    scores: list[float] = []
    for sentence in document:
        positions = range(len(sentence) - 1)
        h, log_p, state = model.log_distribution(model.plan([[sentence]]), state, positions)
        for t, target in enumerate(sentence[1:]):
            mass: dict[int, float] = defaultdict(float)
            for h_i, read, row in said:
                same = cache.kappa if read == sentence[t] else 0.0
                mass[row] += np.exp(cache.theta * float(h[t] @ h_i) + same)
            p = float(log_p[t, target].exp())
            if said:
                p_cache = mass[target] / sum(mass.values())
                p = (1 - cache.weight) * p + cache.weight * p_cache
            scores.append(np.log(p))
            said.append((h[t], sentence[t], target))
    return scores


@pytest.mark.parametrize("cache", [CACHE, OWN], ids=["cache", "own"])
@pytest.mark.parametrize("size", [1, 2, 20])
@pytest.mark.parametrize(("variant", "salience"), [("baseline", False), ("both", True)])
def test_the_cache_is_what_a_loop_over_the_history_says(
    variant: str, size: int, cache: Cache, *, salience: bool
) -> None:
    model = build(variant, "gru-relu", salience=salience)  # type: ignore[arg-type]
    expected = [by_loop(model, document, cache) for document in DOCUMENTS]

    model.cache = cache
    found: list[list[float]] = [[] for _ in DOCUMENTS]
    state = model.initial_state(len(DOCUMENTS))
    for text in windows(DOCUMENTS, size):
        scores, state = model.score(model.plan(text.sentences), state.select(text.kept))
        for document, values in zip(text.documents, scores, strict=True):
            found[document] += values.tolist()

    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("cache", [CACHE, OWN], ids=["cache", "own"])
def test_the_mixture_sums_to_one_and_scores_are_read_off_it(cache: Cache) -> None:
    model = build("both", "gru")
    model.cache = cache

    assert_distributions(model, DOCUMENTS[2])


def test_a_sentence_that_is_only_begun_recalls_what_the_whole_one_does() -> None:
    model = build("both", "gru")
    model.cache = OWN
    first, sentence = [BOS, A, 7, 8, A, 7, EOS], [BOS, 7, 8, EOS]
    _, state = model.score(model.plan([[first]]), model.initial_state(1))

    assert_begun_as_whole(model, sentence, state)


def test_a_weight_of_zero_changes_no_bit() -> None:
    model = build("both", "gru")
    window = model.plan(DOCUMENTS)
    plain, _ = model.score(window, model.initial_state(3))

    model.cache = Cache(theta=1.0, weight=0.0)
    cached, _ = model.score(window, model.initial_state(3))

    for a, b in zip(plain, cached, strict=True):
        np.testing.assert_array_equal(a, b)


def test_no_more_than_its_size_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SIZE", 4)
    model = build("baseline", "gru")
    [document] = [[[BOS, 7, 8, 9, 10, 11, EOS], [BOS, 7, 6, EOS]]]
    h, _, _ = model.log_distribution(model.plan([document]), model.initial_state(1), [7])
    keys, *_ = model.log_distribution(model.plan([document]), model.initial_state(1), range(6))

    model.cache = Cache(theta=0.5, weight=1.0)
    state = model.initial_state(1)
    for sentence in document:
        [scores], state = model.score(model.plan([[sentence]]), state)
    _, _, state = model.log_distribution(model.plan([document[:1]]), model.initial_state(1), [0])
    _, cached, _ = model.log_distribution(model.plan([document[1:]]), state, [0])

    # The last four that were said: 9, 10, 11 and <eos>.
    expected = (0.5 * h @ keys[2:].t()).softmax(1)[0]
    np.testing.assert_allclose(cached[0, [9, 10, 11, EOS]].exp(), expected, atol=1e-12)
    assert torch.isinf(cached[0, [7, 8]]).all()
    assert np.isneginf(scores[0])


@pytest.mark.parametrize("cache", [CACHE, OWN], ids=["cache", "own"])
def test_what_was_said_of_an_entity_counts_for_it_whoever_has_its_row(cache: Cache) -> None:
    names = ["Ann", "Bo", "Cy", "Di"]
    tokens: list[list[int | str]] = [[1, "a", 2], [3, "b", 1], ["c", 4, "d", 1], [2, "a", 4, 3]]
    document = AnonymizedDocument(name="d", sentences=tokens)
    encoded = encode(document, VOCABULARY)
    assert sum(map(len, encoded.loans)) == 3, f"{names[3]}, {names[1]} and {names[2]} need rows"
    model = build("baseline", "gru")
    words = TextModel(model, VOCABULARY)
    plain = words.score(document)

    h, state = [], model.initial_state(1)
    for sentence in encoded.sentences:
        found, _, state = model.log_distribution(
            model.plan([[sentence]]), state, range(len(sentence) - 1)
        )
        h += list(found)
    model.cache = cache
    cached = words.score(document)

    said = [token for sentence in tokens for token in [*sentence, "<eos>"]]
    read = [token for sentence in tokens for token in ["<bos>", *sentence]]
    rowless = _without_row(tokens, encoded.loans)
    for t, token in enumerate(said):
        likely = [
            cache.theta * float(h[t] @ h[i]) + cache.kappa * (read[i] == read[t]) for i in range(t)
        ]
        seen = [(np.exp(likely[i]), said[i]) for i in range(t)]
        seen = [(share, word) for share, word in seen if word not in rowless[t]]
        p = np.exp(plain[t])
        if seen:
            own = sum(share for share, word in seen if word == token)
            p = 0.7 * p + 0.3 * own / sum(share for share, _ in seen)
        assert cached[t] == pytest.approx(np.log(p), abs=1e-12)


def _without_row(tokens: list[list[int | str]], loans: object) -> list[set[int]]:
    """For every token the entities that have no row when it is predicted."""
    found: list[set[int]] = []
    away: set[int] = set()
    for sentence, lent in zip(tokens, loans, strict=True):  # type: ignore[call-overload]
        at = {loan.position: loan for loan in lent}
        for position in range(len(sentence) + 1):
            if position in at:
                away = (away | {at[position].former}) - {at[position].entity}
            found.append(away)
    return found


def test_the_weight_is_the_likeliest_one() -> None:
    rng = np.random.default_rng(3)
    model, cached = np.log(rng.uniform(0.01, 0.5, 200)), rng.uniform(0, 0.6, 200)

    weight = best_weight(model, cached)

    grid = np.linspace(0, 0.999, 1000)
    likelihood = [np.log((1 - w) * np.exp(model) + w * cached).sum() for w in grid]
    assert weight == pytest.approx(grid[int(np.argmax(likelihood))], abs=1e-3)


@pytest.mark.parametrize("kind", [Cache, OwnCache])
def test_tuning_finds_the_setting_that_scores_best(kind: type[Cache]) -> None:
    rng = np.random.default_rng(2)
    words = [["a", 1, "b"], ["c", 2, "d", 1], ["e", "f"]]
    documents = [
        AnonymizedDocument(
            name=f"{n}",
            sentences=[
                list(rng.permutation(np.array(words[i], object))) for i in rng.integers(3, size=6)
            ],
        )
        for n in range(3)
    ]
    model = TextModel(build("both", "gru"), VOCABULARY)

    found = model.tune_cache(documents, kind)

    def nats(cache: Cache) -> float:
        model.model.cache = cache
        return -float(sum(values.sum() for values in model.score_all(documents)))

    best = nats(found)
    assert 0 < found.weight < 1
    for theta, weight in ((1, 0.97), (1, 1.03), (0.7, 1), (1.45, 1)):
        other = replace(found, theta=found.theta * theta, weight=min(1.0, found.weight * weight))
        assert nats(other) > best - 1e-4
    if kind is OwnCache:
        assert found.kappa > 0
        assert nats(replace(found, kappa=found.kappa - 0.5)) > best - 1e-4
        assert nats(replace(found, kappa=found.kappa + 1)) > best - 1e-4
        assert best < nats(model.tune_cache(documents, Cache))
    else:
        assert found.kappa == 0


def test_a_checkpoint_carries_its_setting_and_says_where_it_has_none(tmp_path: Path) -> None:
    save_pretrained(build("both", "gru"), VOCABULARY, tmp_path / "best")
    with pytest.raises(ValueError, match=r"has no cache.json: dntm evaluate"):
        TextModel.load(tmp_path, cache=True)

    CACHE.save(tmp_path / "best")

    assert TextModel.load(tmp_path, cache=True).model.cache == CACHE
    assert TextModel.load(tmp_path).model.cache is None
    (tmp_path / "best" / "cache.json").write_text('{"theta": 0.1, "weight": 1.5}')
    with pytest.raises(ValueError, match=r"cache.json does not hold what was tuned: weight is 1.5"):
        TextModel.load(tmp_path, cache=True)
