"""How well a pretrained encoder recovers hidden words (part of `dntm evaluate`)."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

from dntm.corpus.document import files_below
from dntm.corpus.token_store import TokenStore, read_sentences
from dntm.evaluation.ranks import Contexts, RankSummary, Sentence, recover
from dntm.model.checkpoint import ENCODER_TYPE, best_of
from dntm.settings import read_json

if TYPE_CHECKING:
    from dntm.corpus.vocabulary import Vocabulary

LONGEST = 32
"""Longer sentences of other texts are left out; pretraining did not read any."""


def is_encoder(model: str) -> bool:
    """Whether a model is a pretraining run."""
    path = best_of(Path(model)) / "config.json"
    return path.is_file() and read_json(path).get("model_type") == ENCODER_TYPE


def encoder_recall(run: Path, text: str | None, count: int) -> dict[str, RankSummary]:
    """Hide each word of held-out sentences and rank the vocabulary for its gap.

    The baselines are the words' frequencies ("unigram") and the words around the gap regardless of
    their order ("bag of context"), fitted to the run's own text.
    """
    import torch

    from dntm.model.extensions.naming import nameable
    from dntm.model.pretrained_encoder import PretrainedEncoder, log_share
    from dntm.model.sentence_completion import SentenceCompletion
    from dntm.training.pretraining import fit_bag

    if count < 1:
        raise ValueError(f"sentences is {count}, expected at least 1")
    pretrained = PretrainedEncoder.load(best_of(run))
    store = TokenStore.open(run / "text")
    if text is None:
        sentences = store.sample_held_out(count)
    else:
        sentences = _read(Path(text), pretrained.vocabulary, count)
    if not sentences:
        raise ValueError(f"{text or run} has no sentence to evaluate on")
    model, share = SentenceCompletion.of(pretrained), log_share(pretrained.share)
    bag = fit_bag(pretrained.x, store, pretrained.share)
    zero = torch.zeros_like(pretrained.x[:1])

    def unigram(batch: Sequence[Sentence]) -> torch.Tensor:
        return zero.expand(sum(map(len, batch)), -1)

    methods: dict[str, tuple[Contexts, torch.Tensor, torch.Tensor]] = {
        "encoder": (model.contexts, model.compared(), pretrained.log_share),
        "bag of context": (bag.contexts, pretrained.x, share),
        "unigram": (unigram, pretrained.x, share),
    }
    answers = nameable(pretrained.vocabulary) if pretrained.naming else None
    return {
        name: recover(tqdm(sentences, name, unit=" sentences"), contexts, x, bias, answers)
        for name, (contexts, x, bias) in methods.items()
    }


def _read(text: Path, vocabulary: "Vocabulary", count: int) -> list[Sentence]:
    """Sentences of text files, spread evenly; each line is a paragraph."""
    read = chain.from_iterable(read_sentences(path, "blank-line") for path in files_below(text))
    found = [words for words in read if len(words) <= LONGEST]
    step = max(1, -(-len(found) // count))
    return [np.array([vocabulary.row(w) for w in words]) for words in found[::step]]


def print_recall(name: str, found: dict[str, RankSummary]) -> None:
    """One row per method."""
    print(f"{name}: {found['encoder'].cases:,} hidden words")
    print(f"{'':<16}{'recall at 1':>12}{'at 10':>9}{'at 100':>9}{'mean reciprocal rank':>23}")
    for method, summary in found.items():
        one, ten, hundred = summary.recall.values()
        print(f"{method:<16}{one:>12.3f}{ten:>9.3f}{hundred:>9.3f}{summary.reciprocal_rank:>23.3f}")
