"""`dntm evaluate-encoder`: how well a pretrained encoder recovers hidden words."""

import json
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import tyro
from tqdm import tqdm

from dntm.corpus.build_store import read_sentences
from dntm.corpus.source import files_below
from dntm.corpus.text import Documents
from dntm.files import write_text

if TYPE_CHECKING:
    from dntm.corpus.vocabulary import Vocabulary
    from dntm.evaluation.completion import Recovery, Sentence


@dataclass(frozen=True, kw_only=True)
class Command:
    """Hide each word of held-out sentences and rank the whole vocabulary for its gap.

    Beside the encoder stand the words' frequencies alone (unigram) and a baseline that knows which
    words stand around the gap but not their order (bag of context), fitted to the run's own text.
    """

    run_folder: tyro.conf.Positional[Path]
    """A pretraining run."""
    text: tuple[Path, ...] = ()
    """Text files that pretraining has not seen; where not given, the sentences that the run held
    out of its own text."""
    documents: Documents = "blank-line"
    """Lines of these files: each one a paragraph (blank-line), or wrapped, with empty lines between
    paragraphs (file)."""
    longest: int = 32
    """Leave out sentences of more words than this."""
    sentences: int = 5000
    """How many sentences at most, spread evenly over the text."""
    bag: bool = True
    """Fit and show the bag-of-context baseline; it needs the text in the run folder."""
    json: Path | None = None
    """Write the numbers to this file, too."""

    def run(self) -> None:
        """Print the table."""
        if self.sentences < 1:
            raise ValueError(f"sentences is {self.sentences}, expected at least 1")
        import torch

        from dntm.corpus.token_store import TokenStore
        from dntm.evaluation.completion import Contexts, recover
        from dntm.model.checkpoint import best_of
        from dntm.model.pretrained_encoder import PretrainedEncoder
        from dntm.model.sentence_completion import SentenceCompletion
        from dntm.training.bag_of_context import fit_bag

        pretrained = PretrainedEncoder.load(best_of(self.run_folder))
        store = TokenStore.open(self.run_folder / "text") if self.bag or not self.text else None
        if self.text:
            sentences = self._read(pretrained.vocabulary)
        else:
            assert store is not None
            sentences = store.sample_held_out(self.sentences)
        if not sentences:
            raise ValueError("no sentence to evaluate on: pass --text")
        model, bias = SentenceCompletion.of(pretrained), pretrained.log_share
        ways: dict[str, Contexts] = {"encoder": model.contexts}
        if self.bag and store is not None:
            ways["bag of context"] = fit_bag(pretrained.x, store, pretrained.share).contexts
        zero = torch.zeros_like(pretrained.x[:1])
        ways["unigram"] = lambda batch: zero.expand(sum(map(len, batch)), -1)
        found = {
            name: recover(tqdm(sentences, name, unit=" sentences"), contexts, pretrained.x, bias)
            for name, contexts in ways.items()
        }
        _print_table(found)
        if self.json:
            numbers = {name: asdict(recovery) for name, recovery in found.items()}
            write_text(self.json, json.dumps(numbers, indent=2) + "\n")
            print(f"numbers: {self.json}")

    def _read(self, vocabulary: "Vocabulary") -> "list[Sentence]":
        files = (file for source in self.text for file in files_below(source))
        read = chain.from_iterable(read_sentences(path, self.documents) for path in files)
        found = [words for words in read if len(words) <= self.longest]
        step = max(1, -(-len(found) // self.sentences))
        return [np.array([vocabulary.row(w) for w in words]) for words in found[::step]]


def _print_table(found: "dict[str, Recovery]") -> None:
    words = next(iter(found.values())).words
    print(f"{words:,} hidden words; share recovered among the first 1, 10, 100 of all words")
    print(f"{'':<16}{'recall at 1':>12}{'at 10':>9}{'at 100':>9}{'mean reciprocal rank':>23}")
    for name, recovery in found.items():
        one, ten, hundred = recovery.recall.values()
        print(f"{name:<16}{one:>12.3f}{ten:>9.3f}{hundred:>9.3f}{recovery.reciprocal_rank:>23.3f}")
