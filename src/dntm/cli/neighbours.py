"""`dntm neighbours`: the words that fit a gap, says a pretrained encoder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import tyro

from dntm.corpus.text import WORD
from dntm.corpus.vocabulary import SPECIALS

GAP = "[]"


@dataclass(frozen=True, kw_only=True)
class Command:
    """Show the words that fit the gap [] of a sentence best, by the context around it."""

    run_folder: tyro.conf.Positional[Path]
    """A pretraining run."""
    sentences: tyro.conf.Positional[tuple[str, ...]]
    """Sentences with one gap each, such as "the [] barked at the postman"."""
    count: int = 10
    """How many words to show."""
    by: Literal["probability", "fit"] = "probability"
    """Rank by how probable a word is in the gap, or by how much more probable than elsewhere (fit:
    the product of context vector and embedding)."""

    def run(self) -> None:
        """Print a line a sentence."""
        gaps = [_words(sentence) for sentence in self.sentences]
        if not gaps:
            raise ValueError('no sentence given, expected one such as "the [] barked"')
        from dntm.evaluation.completion import fitting
        from dntm.model.checkpoint import best_of
        from dntm.model.pretrained_encoder import PretrainedEncoder
        from dntm.model.sentence_completion import SentenceCompletion

        pretrained = PretrainedEncoder.load(best_of(self.run_folder))
        model, labels = SentenceCompletion.of(pretrained), pretrained.vocabulary.labels()
        bias = pretrained.log_share
        if self.by == "fit":
            bias = bias.zero_().masked_fill(pretrained.share == 0, -1e9)
        for sentence, (words, gap) in zip(self.sentences, gaps, strict=True):
            rows = np.array([pretrained.vocabulary.row(word) for word in words])
            ranked = fitting(model.contexts([rows])[gap], pretrained.x, bias)
            best = [labels[row] for row, _ in ranked if row >= len(SPECIALS)][: self.count]
            print(f"{sentence}\n    {'  '.join(best)}")


def _words(sentence: str) -> tuple[list[str], int]:
    """The words of a sentence, a stand-in in its gap, and where the gap is."""
    before, *after = sentence.split(GAP)
    if len(after) != 1:
        raise ValueError(f"{sentence!r} has {len(after)} gaps {GAP}, expected one")
    left, right = WORD.findall(before), WORD.findall(after[0])
    return [*left, GAP, *right], len(left)
