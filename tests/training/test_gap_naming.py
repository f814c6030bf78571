"""Pretraining learns to name gaps, and hands that over to the language model."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dntm.corpus.token_store import StoreConfig, TokenStore, build_store
from dntm.corpus.vectors import WordVectors
from dntm.corpus.vocabulary import Vocabulary
from dntm.model.checkpoint import save_pretrained
from dntm.model.config import Merging, ModelConfig
from dntm.model.extensions.naming import nameable
from dntm.model.language_model import DynamicTextModel
from dntm.model.pretrained_encoder import PretrainedEncoder
from dntm.training.batches import NamingBatch, WordsByType, WordsToName
from dntm.training.config import EncoderConfig, PretrainConfig, PretrainRecipe, TrainConfig
from dntm.training.initial_weights import initial_model
from dntm.training.pretraining import pretrain_run
from tests.training.small_pretraining import NOUNS, config, losses


def with_naming(
    text: Path, run: Path, vectors: Path, iterations: int = 120, mentions: int = 0
) -> PretrainConfig:
    """Single gaps or, with `mentions`, words drawn by type whose contexts are merged."""
    plain = config(text, run, iterations)
    sizes = EncoderConfig(embedding_dim=12, encoder_dim=12, context_dim=30)
    merged = replace(sizes, merging="attention", attention=True)
    return replace(
        plain,
        vectors=vectors,
        store=replace(plain.store, lower=True, without_vector=1),
        model=merged if mentions else sizes,
        training=replace(
            plain.training, objective="naming", candidates=6, hide=0.05, mentions=mentions,
            embedding_rate=0.0 if mentions else 0.1,
        ),
    )  # fmt: skip


def language_model(words: Vocabulary, merging: Merging) -> ModelConfig:
    """A model with the sizes of the pretrained parts."""
    return ModelConfig(
        vocabulary=len(words), entities=2, merging=merging,
        extensions=("naming", "word-attention"),
        embedding_dim=12, encoder_dim=12, context_dim=30, hidden_dim=20,
    )  # fmt: skip


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """Random ones, of another width than the embeddings."""
    rng = np.random.default_rng(3)
    words = ["the", "and", "heard", *NOUNS, *(verb for verbs in NOUNS.values() for verb in verbs)]
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{w} {' '.join(map(str, rng.standard_normal(8)))}\n" for w in words))
    return path


def test_gaps_are_learned_to_be_named_while_word_vectors_stay(
    text: Path, tmp_path: Path, vectors: Path
) -> None:
    run = tmp_path / "run"
    list(pretrain_run(with_naming(text, run, vectors)))

    pretrained = PretrainedEncoder.load(run / "best")
    first, last = (
        json.loads(line)["held_out"]["recall"]["1"]
        for line in (run / "metrics.jsonl").read_text().splitlines()[::3]
    )
    x = torch.nn.functional.normalize(pretrained.model.x, dim=1)
    rows, given = WordVectors.read(vectors).of(pretrained.vocabulary)
    unit = torch.nn.functional.normalize(torch.from_numpy(given - given.mean(0)), dim=1)

    assert last > max(first, 0.6)
    kept = torch.corrcoef(torch.stack(((x[rows] @ x[rows].T).ravel(), (unit @ unit.T).ravel())))
    assert kept[0, 1] > 0.9


def test_what_was_learned_by_type_is_where_the_language_model_begins_and_stays(
    text: Path, tmp_path: Path, vectors: Path
) -> None:
    run = tmp_path / "run"
    list(pretrain_run(with_naming(text, run, vectors, mentions=3)))
    pretrained = PretrainedEncoder.load(run / "best")
    learned, words = pretrained.model.state_dict(), replace(pretrained.vocabulary, entities=2)

    def begun(merging: Merging, start_from: Path | None = None) -> DynamicTextModel:
        model = language_model(words, merging)
        settings = TrainConfig(dataset=text, pretrained=run, start_from=start_from, model=model)
        return initial_model(settings, words)

    same, other = begun("attention"), begun("gru")
    d = torch.rand(1, 30, generator=torch.Generator().manual_seed(1))
    x_e, y_e = same.x.entity(torch.tensor([3]), d), same.y_entity(torch.tensor([3]), d)

    assert losses(run)[-1] < 0.6 * losses(run)[0]
    assert learned["naming.t"][0] < learned["naming.t"][:3].max(), "more contexts, less doubt"
    fixed = {name: p for name, p in same.paper_parameters().items() if not p.requires_grad}
    assert {name.split(".")[0] for name in fixed} == {"encoder", "merging", "x"}
    assert all(value.equal(learned[name.removeprefix("x.")]) for name, value in fixed.items())
    assert fixed["merging.v"].any()
    near_x, near_y = (
        torch.cosine_similarity(e, layer.weight) for e, layer in ((x_e, same.x), (y_e, same.output))
    )
    torch.testing.assert_close(near_y, near_x)
    assert all(
        p.requires_grad == (not name.startswith("encoder"))
        for name, p in other.paper_parameters().items()
    )

    core = DynamicTextModel(replace(same.config, variant="baseline", extensions=()))
    save_pretrained(core, words, tmp_path / "core")
    joined = begun("attention", tmp_path / "core")
    assert joined.x.weight[5:].equal(learned["x"][3:])
    assert joined.output.weight.equal(core.output.weight)
    ours, theirs = joined.paper_parameters(), core.paper_parameters()
    assert all(ours[name].equal(p) for name, p in theirs.items() if name.startswith("lstm."))
    assert joined.W_dy is not None
    assert not joined.W_dy.any()


def test_a_pretraining_begins_where_another_ended(
    text: Path, tmp_path: Path, vectors: Path
) -> None:
    first = with_naming(text, tmp_path / "first", vectors, iterations=10)
    list(pretrain_run(first))
    again = replace(first, output_dir=tmp_path / "again", start_from=tmp_path / "first")
    still = replace(first.training, iterations=1, learning_rate=1e-9, average=0.0)

    list(pretrain_run(replace(again, training=still)))

    before, after = (PretrainedEncoder.load(tmp_path / n / "best") for n in ("first", "again"))
    torch.testing.assert_close(after.model.state_dict(), before.model.state_dict())
    with pytest.raises(ValueError, match="missing or unknown parameters W_dx"):
        list(pretrain_run(replace(config(text, tmp_path / "plain"), start_from=tmp_path / "first",
                                  store=again.store)))  # fmt: skip
    with pytest.raises(ValueError, match="merging is max, expected the naming objective with ment"):
        replace(first, model=replace(first.model, merging="max"))


def test_a_drawn_type_is_named_in_several_of_its_sentences(text: Path, tmp_path: Path) -> None:
    build_store([text], tmp_path / "text", StoreConfig(min_count=1))
    store = TokenStore.open(tmp_path / "text")
    recipe = PretrainRecipe(objective="naming", mentions=4, batch=40, candidates=5)
    random = np.random.default_rng(1)
    answers = nameable(store.vocabulary)

    batch = WordsByType(store, answers, recipe).batch(random)

    words, ends = np.concatenate(batch.sentences), np.cumsum([len(s) for s in batch.sentences])
    gaps = np.nonzero(batch.named)[0]
    assert np.searchsorted(ends, gaps, side="right").tolist() == [*range(len(batch.sentences))]
    assert 1 < np.bincount(words[gaps]).max() <= 4
    assert answers[words[gaps]].all()
    assert batch.hidden[gaps].all()
    assert np.isin(words[gaps], batch.candidates).all()
    with pytest.raises(ValueError, match="no word of the text occurs 8 times"):
        WordsByType(store, np.zeros_like(answers), recipe)


def test_shares_of_a_batch_to_name_make_up_the_whole() -> None:
    random = np.random.default_rng(2)
    sentences = [random.integers(3, 9, length) for length in (4, 1, 6, 3, 2)]
    to_name = WordsToName(np.arange(9), np.arange(9) > 3, subsample=0.2)

    batch = to_name.batch(sentences, 3, random, hide=0.4)
    parts = [batch.share(rank, 2) for rank in range(2)]

    def words(part: NamingBatch) -> list[tuple[int, bool, bool]]:
        rows = np.concatenate(part.sentences).tolist()
        return list(zip(rows, part.named.tolist(), part.hidden.tolist(), strict=True))

    assert batch.named.any()
    assert batch.hidden.any()
    assert sorted(words(parts[0]) + words(parts[1])) == sorted(words(batch))
    assert sum(part.words for part in parts) == batch.words
