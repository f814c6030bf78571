"""`dntm evaluate-meaning`: how well a model infers the meaning of unknown words."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from tqdm import tqdm

from dntm.cli.runs import Threads, print_table
from dntm.corpus.document import files_below
from dntm.corpus.entities import Lexicon
from dntm.corpus.text import Documents
from dntm.corpus.token_store import read_sentences
from dntm.corpus.vocabulary import entity_rows
from dntm.evaluation import passages
from dntm.files import folder_of, write_text

CANDIDATES = 30_000
"""Candidates for a hidden or defined word: the most frequent content words."""
FIT_WORDS = 2_000_000
"""Words of --fit to read."""


@dataclass(frozen=True, kw_only=True)
class EvaluateMeaning(Threads):
    """Compare the meaning that a model infers for unknown words with the true words or ratings.

    Prints one table for each of --text, --trials, --definitions and --pairs; docs/data.md describes
    the files. The baselines are the context encoder alone and a bag of words. --fit adds the linear
    map of "a la carte" (Khodak et al. 2018).
    """

    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """A run folder, a checkpoint such as RUN/best, or "default" (the bundled model)."""
    text: tuple[Path, ...] = ()
    """Held-out text files or folders. Words are hidden in up to six of their sentences, and the
    model has to predict them."""
    trials: Path | None = None
    """A file of invented words with similarity ratings. Columns: id, texts with ___ for the word
    (joined by @@), probes, ratings."""
    definitions: Path | None = None
    """A file of words and their definitions, with ___ in place of the word."""
    pairs: Path | None = None
    """A file of word pairs with similarity ratings."""
    fit: tuple[Path, ...] = ()
    """Training text for the linear map of a la carte. Two million words are read, the same number
    from the beginning of each file."""
    documents: Documents = "blank-line"
    """Text files: blank lines separate documents and each line is a paragraph (blank-line), or each
    file is a document and blank lines separate paragraphs (file)."""
    types: int = 1000
    """Maximum number of words to hide per frequency band. Words that were never hidden in training
    are counted separately."""
    seed: int = 1
    """Random seed for the hidden words, their sentences and the intervals."""
    json: Path | None = None
    """Write the printed numbers to this JSON file."""

    def run(self) -> None:
        """Print one table per kind of test."""
        if not (self.text or self.trials or self.definitions or self.pairs):
            raise ValueError(
                "nothing to evaluate on: pass --text, --trials, --definitions or --pairs"
            )
        if self.types < 1:
            raise ValueError(f"types is {self.types}, expected at least 1")
        rated = [] if self.trials is None else passages.read_trials(self.trials)
        defined = [] if self.definitions is None else passages.read_definitions(self.definitions)
        compared = [] if self.pairs is None else passages.read_pairs(self.pairs)
        self.set_threads()
        from dntm.evaluation import meaning
        from dntm.evaluation.word_baselines import a_la_carte, bag_of_words
        from dntm.model.scorer import Scorer
        from dntm.reader.meaning import content_words

        model = Scorer.load(folder_of(self.model))
        vocabulary, lexicon = model.vocabulary, Lexicon(model.vocabulary)
        places = islice(content_words(vocabulary.whole_words()), CANDIDATES)
        candidates = np.fromiter(places, np.int64) + entity_rows(vocabulary.entities).stop
        numbers: dict[str, Any] = {"model": self.model, "seed": self.seed}
        if self.text or rated or defined:
            baselines = {"bag of words": bag_of_words(model)}
            if self.fit:
                baselines["a la carte"] = a_la_carte(self._fit_sentences(lexicon), model)
            predictor = meaning.Predictor(model, baselines)
        if self.text:
            groups = meaning.type_groups(vocabulary, candidates)
            documents = passages.held_out_documents(self.text, self.documents, lexicon)
            texts = iter(tqdm(documents, "reading --text"))
            found = passages.hide_types(texts, groups, vocabulary, most=self.types, seed=self.seed)
            if not any(found.values()):
                raise ValueError("no word of the text can be hidden: expected known words")
            progress = partial(tqdm, desc="predicting hidden words")
            numbers["hidden_words"] = meaning.hidden_words(predictor, found, candidates, progress)
            _print_hidden(numbers["hidden_words"])
        if rated:
            numbers["trials"] = meaning.trials(predictor, lexicon, rated, seed=self.seed)
            _print_trials(numbers["trials"])
        if defined:
            numbers["definitions"] = meaning.definitions(predictor, lexicon, defined, candidates)
            _print_definitions(numbers["definitions"])
        if compared:
            numbers["pairs"] = meaning.pairs(model, compared)
            line = "{pairs:,} word pairs, {left_out:,} left out; Spearman: x {x:.3f}, y {y:.3f}"
            print(line.format(**numbers["pairs"]))
        if self.json:
            text = json.dumps(numbers, indent=2, allow_nan=False, default=asdict)
            write_text(self.json, text + "\n")
            print(f"numbers: {self.json}")

    def _fit_sentences(self, lexicon: Lexicon) -> Iterator[list[int]]:
        """Sentences of --fit as rows; words that are names count if the vocabulary has them."""
        files = [path for source in self.fit for path in files_below(source)]
        for path in tqdm(files, "reading --fit", unit=" files"):
            words = FIT_WORDS // len(files)
            for sentence in read_sentences(path, self.documents):
                yield [lexicon.row(word) for word in sentence]
                words -= len(sentence)
                if words <= 0:
                    break


def _print_hidden(found: dict[str, Any]) -> None:
    print(f"hidden words, {found['candidates']:,} candidates")
    for group, methods in found["ranks"].items():
        rows = [[f"words {group}", "mentions", "types", "recall at 1", "at 10", "MRR", "median"]]
        rows += [
            [method, f"{n}", f"{s.cases:,}", f"{s.recall[1]:.3f}", f"{s.recall[10]:.3f}",
             f"{s.reciprocal_rank:.3f}", f"{s.median_rank:,.0f}"]
            for method, by_mentions in methods.items()
            for n, s in by_mentions.items()
        ]  # fmt: skip
        print_table(rows)
    for n, own in found["calibration"].items():
        bins = (f"{conf:.2f}: {right:.2f} ({cases:,})" for conf, right, cases in own["bins"])
        print(f"calibration after {n} mentions, {own['cases']:,} types: error {own['error']:.3f}")
        print(f"  confidence: share right (types)  {', '.join(bins)}")
    if (falling := found["falling"]) is not None:
        print(f"lower confidence although the right word is ranked better: {falling:.1%}")


def _print_trials(found: dict[str, Any]) -> None:
    print(
        "{trials:,} trials of {words:,} invented words; {unknown_probes:.1%} of the probes are not "
        "in the vocabulary; counted as 0: {few_probes:,} trials with fewer than two known probes, "
        "{constant:,} with constant ratings, {without_gap:,} without ___".format(**found)
    )
    rows = [["Spearman, mean over trials", "mean", "95 % interval"]]
    for method, (mean, (low, high)) in found["correlations"].items():
        rows.append([method, f"{mean:.3f}", f"{low:.3f} to {high:.3f}"])
    print_table(rows)


def _print_definitions(found: dict[str, Any]) -> None:
    print(
        "{words:,} defined words, {candidates:,} candidates; left out: {unknown:,} not among them, "
        "{without_gap:,} without ___".format(**found)
    )
    title = f"after the definition ({found['words']:,})"
    rows = [[title, "recall at 1", "at 10", "at 100", "MRR", "median rank"]]
    for method, s in found["ranks"].items():
        shares = [f"{value:.3f}" for value in (*s.recall.values(), s.reciprocal_rank)]
        rows.append([method, *shares, f"{s.median_rank:,.0f}"])
    print_table(rows)
