"""Pretraining really learns, resumes to the same bits, and gives the same on several processes."""

import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from dntm.corpus.token_store import StoreConfig, TokenStore, build_store
from dntm.corpus.vectors import WordVectors
from dntm.evaluation.guesses import recover
from dntm.model.config import Merging, ModelConfig
from dntm.model.language_model import DynamicTextModel
from dntm.model.pretrained_encoder import PretrainedEncoder
from dntm.model.sentence_completion import SentenceCompletion, lay_out_gaps
from dntm.training import pretraining
from dntm.training.batches import (
    NamingBatch,
    Negatives,
    SentenceBatches,
    WordsToName,
    sentence_batch,
)
from dntm.training.config import EncoderConfig, PretrainConfig, PretrainRecipe, TrainConfig
from dntm.training.pretraining import fit_bag, pretrain_run
from dntm.training.processes import Interrupted
from dntm.training.run_folder import RunFolder
from dntm.training.state import Diverged, initial_model

NOUNS = {"dog": ("barked", "growled"), "cat": ("purred", "mewed"), "bee": ("hummed", "stung")}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Only the order of the words tells who does what to whom."""
    rng = random.Random(2)
    path = tmp_path_factory.mktemp("text") / "text.txt"
    lines = []
    for _ in range(1500):
        who, whom = rng.sample(sorted(NOUNS), 2)
        lines.append(f"the {who} {rng.choice(NOUNS[who])} and the {whom} heard the {who} .")
    path.write_text("\n".join(lines) + "\n")
    return path


def config(text: Path, run: Path, iterations: int = 40) -> PretrainConfig:
    return PretrainConfig(
        text=(text,),
        output_dir=run,
        store=StoreConfig(min_count=1, held_out=0.1),
        model=EncoderConfig(embedding_dim=12, encoder_dim=12),
        training=PretrainRecipe(
            batch=16,
            iterations=iterations,
            learning_rate=0.02,
            validations=4,
            average=0.9,
            schedule="cosine",
        ),
    )


def outcome(run: Path) -> dict[str, bytes]:
    latest = RunFolder(run).latest()
    assert latest is not None
    names = ("metrics.jsonl", "best/model.safetensors")
    return {name: (run / name).read_bytes() for name in names} | {
        "state": (latest / "state.safetensors").read_bytes()
    }


def test_the_encoder_learns_what_a_bag_of_words_cannot(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretraining, "BAG_UPDATES", 400)
    list(pretrain_run(config(text, tmp_path / "run", iterations=300)))

    pretrained = PretrainedEncoder.load(tmp_path / "run" / "best")
    store = TokenStore.open(tmp_path / "run" / "text")
    held_out, bias = store.sample_held_out(100), pretrained.log_share
    encoder = SentenceCompletion.of(pretrained).contexts
    bag = fit_bag(pretrained.x, store, pretrained.share).contexts
    by_encoder = recover(held_out, encoder, pretrained.x, bias)
    by_bag = recover(held_out, bag, pretrained.x, bias)
    assert by_encoder.recall[1] > 0.75
    assert by_encoder.recall[1] > by_bag.recall[1] + 0.3


def test_a_run_stopped_at_any_update_resumes_to_the_same_bits(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    list(pretrain_run(config(text, run)))
    expected = outcome(run)
    run.rename(tmp_path / "whole")
    monkeypatch.setattr(pretraining, "CHECKPOINT_SECONDS", 0.0)
    rng = random.Random(3)

    resumes = 0
    while True:
        progress = pretrain_run(config(text, run), resume=resumes > 0)
        stop_after = rng.randint(1, 15)
        if len(list(islice(progress, stop_after))) < stop_after:
            break
        progress.close()
        resumes += 1

    assert resumes > 3
    assert outcome(run) == expected


def test_where_nothing_is_held_out_a_validation_has_no_numbers(text: Path, tmp_path: Path) -> None:
    settings = config(text, tmp_path / "run", iterations=4)

    found = list(pretrain_run(replace(settings, store=StoreConfig(min_count=1, held_out=0.0))))

    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line, parse_constant=pytest.fail)["held_out"] for line in lines] == [
        None
    ] * 4
    assert all(progress.validation is None for progress in found)


def test_an_epoch_reads_every_sentence_once_and_any_batch_can_be_the_first(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{'w ' * (1 + n % 7)}.\n" for n in range(333)))
    build_store([tmp_path / "a.txt"], tmp_path / "s", StoreConfig(min_count=1, held_out=0.1))
    batches = SentenceBatches(TokenStore.open(tmp_path / "s"), 4, seed=1)

    epoch = list(islice(batches.numbers(), 75 + 75))

    assert sorted(np.concatenate(epoch[:75])) == list(range(300))
    assert sorted(np.concatenate(epoch[75:])) == list(range(300))
    for start in (1, 63, 64, 70, 75, 99):
        np.testing.assert_array_equal(next(batches.numbers(start)), epoch[start])


def test_negatives_follow_the_smoothed_counts() -> None:
    counts = np.array([16, 5, 5, 81, 0, 1])

    negatives = Negatives.smoothed(counts, 0.75)
    drawn = negatives.draw(20_000, 2, np.random.default_rng(0))

    np.testing.assert_allclose(negatives.share, np.array([8, 0, 0, 27, 0, 1]) / 36)
    shares = np.bincount(drawn.ravel(), minlength=6) / drawn.size
    np.testing.assert_allclose(shares, negatives.share, atol=0.01)


def test_shares_of_a_batch_make_up_the_whole(text: Path, tmp_path: Path) -> None:
    build_store([text], tmp_path / "s", StoreConfig(min_count=1))
    store = TokenStore.open(tmp_path / "s")
    batch = sentence_batch(
        store, np.arange(7), Negatives.smoothed(store.counts, 0.75), 3, np.random.default_rng(1)
    )
    model = SentenceCompletion(len(store.vocabulary), 6, 5, torch.Generator().manual_seed(1))

    parts = [batch.share(rank, 3) for rank in range(3)]

    assert sum(part.words for part in parts) == batch.words
    whole = model(batch.sentences, batch.negatives)
    added = sum(model(part.sentences, part.negatives) for part in parts)
    torch.testing.assert_close(added, whole)


def pretrain(*arguments: str, processes: int = 1) -> subprocess.CompletedProcess[str]:
    python = [sys.executable, "-m"]
    launch = [*python, "torch.distributed.run", "--nproc-per-node", str(processes), "-m"]
    return subprocess.run(
        [*(launch if processes > 1 else python), "dntm", "pretrain", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def options(text: Path, run: Path) -> list[str]:
    return [
        *("--text", str(text), "--output-dir", str(run), "--store.min-count", "1"),
        *("--model.embedding-dim", "12", "--model.encoder-dim", "12"),
        *("--training.iterations", "12", "--training.batch", "15", "--training.validations", "3"),
    ]


def losses(run: Path) -> list[float]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["loss"] for line in lines]


def test_two_processes_give_the_losses_of_one(text: Path, tmp_path: Path) -> None:
    alone = pretrain(*options(text, tmp_path / "one"))
    together = pretrain(*options(text, tmp_path / "two"), processes=2)

    assert alone.returncode == together.returncode == 0, alone.stderr + together.stderr
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-5)


def test_a_pretraining_that_diverges_hands_nothing_over(text: Path, tmp_path: Path) -> None:
    settings = config(text, tmp_path / "run")
    wild = replace(settings.training, learning_rate=1e30, average=0.0)

    with pytest.raises(Diverged, match="smaller learning rate"):
        list(pretrain_run(replace(settings, training=wild)))

    assert not (tmp_path / "run" / "best").exists()
    assert RunFolder(tmp_path / "run").latest() is None


def test_two_processes_never_pretrain_in_one_folder(text: Path, tmp_path: Path) -> None:
    first = pretrain_run(config(text, tmp_path / "run"))
    next(first)

    with pytest.raises(ValueError, match="in use by another process"):
        next(pretrain_run(config(text, tmp_path / "run"), resume=True))
    first.close()


def test_other_settings_cannot_be_resumed(text: Path, tmp_path: Path) -> None:
    settings = config(text, tmp_path / "run")
    next(pretrain_run(settings))

    with pytest.raises(ValueError, match="seed: 1 / seed: 2"):
        next(pretrain_run(replace(settings, seed=2), resume=True))
    with pytest.raises(ValueError, match="holds a run already"):
        next(pretrain_run(settings))


def with_naming(text: Path, run: Path, vectors: Path) -> PretrainConfig:
    plain = config(text, run, iterations=120)
    return replace(
        plain,
        vectors=vectors,
        store=replace(plain.store, lower=True, without_vector=1),
        model=EncoderConfig(embedding_dim=12, encoder_dim=12, context_dim=16, merging="attention"),
        training=replace(
            plain.training, objective="naming", candidates=6, embedding_rate=0.1, hide=0.05
        ),
    )


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
    x = torch.nn.functional.normalize(pretrained.x, dim=1)
    rows, given = WordVectors.read(vectors).of(pretrained.vocabulary)
    unit = torch.nn.functional.normalize(torch.from_numpy(given), dim=1)

    assert last > max(first, 0.6)
    assert pretrained.naming["W_dx"].shape == (12, 16)
    kept = torch.corrcoef(torch.stack(((x[rows] @ x[rows].T).ravel(), (unit @ unit.T).ravel())))
    assert kept[0, 1] > 0.9


def test_guesses_are_handed_over_as_long_as_words_are(
    text: Path, tmp_path: Path, vectors: Path
) -> None:
    run = tmp_path / "run"
    settings = with_naming(text, run, vectors)
    longer = replace(settings.training, iterations=400)
    alone = replace(settings.model, merging=None)
    list(pretrain_run(replace(settings, model=alone, training=longer)))

    pretrained = PretrainedEncoder.load(run / "best")
    model = SentenceCompletion.of(pretrained)
    layout = lay_out_gaps(TokenStore.open(run / "text").sentences(np.arange(200)))
    d = SentenceCompletion._contexts(model, layout, *model._around(layout))
    guesses = d @ pretrained.naming["W_dx"].T + pretrained.naming["b"]

    length = guesses.norm(dim=1).mean() / pretrained.x.norm(dim=1).mean()
    assert length == pytest.approx(1, abs=0.1)


def test_what_was_learned_of_naming_is_where_the_language_model_begins_and_stays(
    text: Path, tmp_path: Path, vectors: Path
) -> None:
    run = tmp_path / "run"
    settings = with_naming(text, run, vectors)
    list(pretrain_run(replace(settings, training=replace(settings.training, iterations=20))))
    pretrained = PretrainedEncoder.load(run / "best")
    words = replace(pretrained.vocabulary, entities=2)

    def begun(merging: Merging) -> DynamicTextModel:
        model = ModelConfig(
            vocabulary=len(words), entities=2, merging=merging, naming=True,
            embedding_dim=12, encoder_dim=12, context_dim=16, hidden_dim=20,
        )  # fmt: skip
        return initial_model(TrainConfig(dataset=text, pretrained=run, model=model), words)

    same, other = begun("attention"), begun("gru")
    d = torch.rand(1, 16, generator=torch.Generator().manual_seed(1))
    x_e, y_e = (e.entity(torch.tensor([3]), d) for e in (same.x, same.output.y))

    fixed = {name: p for name, p in same.named_parameters() if not p.requires_grad}
    learned = {"x.W_dx": "W_dx", "merging.W": "merging.W", "merging.v": "merging.v"}
    assert {name.split(".")[0] for name in fixed} == {"encoder", "merging", "x"}
    assert all(fixed[name].equal(pretrained.naming[given]) for name, given in learned.items())
    assert fixed["merging.v"].any()
    near_x, near_y = (
        torch.cosine_similarity(e, layer.weight)
        for e, layer in ((x_e, same.x), (y_e, same.output.y))
    )
    torch.testing.assert_close(near_y, near_x)
    assert all(
        p.requires_grad == (not name.startswith("encoder")) for name, p in other.named_parameters()
    )


def test_a_pretraining_begins_where_another_ended(
    text: Path, tmp_path: Path, vectors: Path
) -> None:
    first = with_naming(text, tmp_path / "first", vectors)
    first = replace(first, training=replace(first.training, iterations=10))
    list(pretrain_run(first))
    again = replace(first, output_dir=tmp_path / "again", start_from=tmp_path / "first")
    still = replace(first.training, iterations=1, learning_rate=1e-9, average=0.0)

    list(pretrain_run(replace(again, training=still)))

    before, after = (PretrainedEncoder.load(tmp_path / n / "best") for n in ("first", "again"))
    torch.testing.assert_close(after.x, before.x)
    torch.testing.assert_close(after.naming, before.naming)
    torch.testing.assert_close(after.encoder, before.encoder)
    with pytest.raises(ValueError, match=r"another objective or size: .* differs"):
        list(pretrain_run(replace(config(text, tmp_path / "plain"), start_from=tmp_path / "first",
                                  store=again.store)))  # fmt: skip


def test_what_only_naming_uses_is_an_error_without_it(text: Path, tmp_path: Path) -> None:
    plain = config(text, tmp_path / "run")

    with pytest.raises(ValueError, match=r"model.merging is max, which has no effect"):
        replace(plain, model=replace(plain.model, merging="max"))
    with pytest.raises(ValueError, match=r"training.hide is 0.1, which has no effect"):
        replace(plain, training=replace(plain.training, hide=0.1))


def test_an_encoder_that_merges_but_names_nothing_is_refused(
    text: Path, tmp_path: Path, vectors: Path
) -> None:
    run = tmp_path / "run"
    settings = with_naming(text, run, vectors)
    list(pretrain_run(replace(settings, training=replace(settings.training, iterations=4))))
    pretrained = PretrainedEncoder.load(run / "best")
    merging = {n: v for n, v in pretrained.naming.items() if n.startswith("merging")}
    replace(pretrained, naming=merging).save(tmp_path / "odd")

    with pytest.raises(ValueError, match="W_dx"):
        PretrainedEncoder.load(tmp_path / "odd")


def test_words_that_nobody_can_name_are_no_obstacle_to_the_papers_objective(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("1 2 3 .\n2 3 4 .\n3 1 2 .\n" * 9)

    list(pretrain_run(config(tmp_path / "a.txt", tmp_path / "run", iterations=4)))

    assert (tmp_path / "run" / "best").exists()


def test_a_validation_after_batches_without_a_word_to_name_has_no_loss(
    tmp_path: Path, vectors: Path
) -> None:
    (tmp_path / "a.txt").write_text("1 2 3 .\n" * 40 + "the dog barked .\n" + "2 3 1 .\n" * 40)
    settings = with_naming(tmp_path / "a.txt", tmp_path / "run", vectors)

    few = replace(settings.training, batch=2, iterations=4, validations=4)
    list(pretrain_run(replace(settings, training=few)))

    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert None in [json.loads(line)["loss"] for line in lines]


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


def test_two_processes_learn_to_name(text: Path, tmp_path: Path, vectors: Path) -> None:
    together = pretrain(
        *("--text", str(text), "--output-dir", str(tmp_path / "run"), "--vectors", str(vectors)),
        *("--recipe", "naming", "--store.without-vector", "1", "--store.min-count", "1"),
        *("--model.embedding-dim", "12", "--model.encoder-dim", "12", "--model.context-dim", "8"),
        *("--training.candidates", "5", "--training.subsample", "1", "--training.batch", "15"),
        *("--model.merging", "attention", "--training.hide", ".1"),
        *("--training.iterations", "30", "--training.learning-rate", ".02"),
        *("--training.validations", "2"),
        processes=2,
    )

    assert together.returncode == 0, together.stderr
    assert losses(tmp_path / "run")[-1] < losses(tmp_path / "run")[0]
    assert PretrainedEncoder.load(tmp_path / "run" / "best").merging == "attention"


def test_naming_resumes_to_the_same_bits(text: Path, tmp_path: Path, vectors: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    list(pretrain_run(with_naming(text, whole, vectors)))

    short = pretrain_run(with_naming(text, parts, vectors))
    list(islice(short, 31))
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(Interrupted):
        list(short)
    list(pretrain_run(with_naming(text, parts, vectors), resume=True))

    assert (parts / "best/model.safetensors").read_bytes() == (
        whole / "best/model.safetensors"
    ).read_bytes()
