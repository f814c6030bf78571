"""`dntm evaluate-encoder` and `dntm neighbours`: what a pretrained encoder makes of gaps."""

import json
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import tyro
from tqdm import tqdm

from dntm.cli.runs import Threads, refuse_unused
from dntm.corpus.source import files_below
from dntm.corpus.text import WORD, Documents
from dntm.corpus.token_store import read_sentences
from dntm.corpus.vocabulary import SPECIALS
from dntm.files import write_text

if TYPE_CHECKING:
    from dntm.corpus.vocabulary import Vocabulary
    from dntm.evaluation.guesses import Recovery, Sentence

GAP = "[]"


@dataclass(frozen=True, kw_only=True)
class EvaluateEncoder(Threads):
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
        if not self.text:
            refuse_unused(self, "documents longest", "without --text")
        self.set_threads()
        import torch

        from dntm.corpus.token_store import TokenStore
        from dntm.evaluation.guesses import Contexts, recover
        from dntm.model.checkpoint import best_of
        from dntm.model.naming import nameable
        from dntm.model.pretrained_encoder import PretrainedEncoder, log_share
        from dntm.model.sentence_completion import SentenceCompletion
        from dntm.training.pretraining import fit_bag

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
            name: recover(
                tqdm(sentences, name, unit=" sentences"),
                contexts,
                model.compared() if name == "encoder" else pretrained.x,
                bias if name == "encoder" else log_share(pretrained.share),
                nameable(pretrained.vocabulary) if pretrained.naming else None,
            )
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


@dataclass(frozen=True, kw_only=True)
class Neighbours(Threads):
    """Show the words that fit the gap [] of a sentence best, by the context around it."""

    run_folder: tyro.conf.Positional[Path]
    """A pretraining run; or a language model (a run, a checkpoint, or default: the one that comes
    with dntm), which says what it takes an unknown word in the gap for."""
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
        self.set_threads()
        from dntm.corpus.entities import Lexicon
        from dntm.evaluation.guesses import fitting
        from dntm.model.checkpoint import SHIPPED, best_of, is_language_model
        from dntm.model.pretrained_encoder import PretrainedEncoder
        from dntm.model.sentence_completion import SentenceCompletion

        folder = SHIPPED if str(self.run_folder) == "default" else best_of(self.run_folder)
        if is_language_model(folder):
            refuse_unused(self, "by", "with a language model, which names what it takes a word for")
            self._taken_for(folder)
            return
        pretrained = PretrainedEncoder.load(folder)
        model, labels = SentenceCompletion.of(pretrained), pretrained.vocabulary.labels()
        lexicon, bias = Lexicon(pretrained.vocabulary), pretrained.log_share
        if self.by == "fit":
            bias = bias.zero_().masked_fill(pretrained.share == 0, -1e9)
        for sentence, (words, gap) in zip(self.sentences, gaps, strict=True):
            rows = np.array([lexicon.row(word) for word in words])
            ranked = fitting(model.contexts([rows])[gap], model.compared(), bias)
            best = [labels[row] for row, _ in ranked if row >= len(SPECIALS)][: self.count]
            print(f"{sentence}\n    {'  '.join(best)}")

    def _taken_for(self, folder: Path) -> None:
        from dntm.reader.meaning import Meanings
        from dntm.reader.reader import Reader

        reader = Reader.from_pretrained(folder)
        reader.meanings = Meanings(reader.models.dynamic, reader.vocabulary, self.count)
        for sentence in self.sentences:
            reading = reader.read(sentence.replace(GAP, "[1]"), entities="inline")
            _, state = reading.trail(1)[-1]
            print(f"{sentence}\n    {'  '.join(near.word for near in state.taken_for)}")


def _print_table(found: "dict[str, Recovery]") -> None:
    words = next(iter(found.values())).words
    print(f"{words:,} hidden words; share recovered among the first 1, 10, 100 of all words")
    print(f"{'':<16}{'recall at 1':>12}{'at 10':>9}{'at 100':>9}{'mean reciprocal rank':>23}")
    for name, recovery in found.items():
        one, ten, hundred = recovery.recall.values()
        print(f"{name:<16}{one:>12.3f}{ten:>9.3f}{hundred:>9.3f}{recovery.reciprocal_rank:>23.3f}")


def _words(sentence: str) -> tuple[list[str], int]:
    """The words of a sentence, a stand-in in its gap, and where the gap is."""
    before, *after = sentence.split(GAP)
    if len(after) != 1:
        raise ValueError(f"{sentence!r} has {len(after)} gaps {GAP}, expected one")
    left, right = WORD.findall(before), WORD.findall(after[0])
    return [*left, GAP, *right], len(left)
