"""`dntm evaluate-meaning`: how well a model infers the meaning of unknown words."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro
from tqdm import tqdm

from dntm.cli.runs import Threads, print_ranks, print_table
from dntm.corpus.entities import Lexicon
from dntm.corpus.entity_slots import encode
from dntm.corpus.text import Documents
from dntm.corpus.vocabulary import UNK
from dntm.evaluation.passages import (
    Passage,
    gap_passage,
    hide_words,
    parts_of,
    read_definitions,
    read_pairs,
    read_trials,
    sampled,
    text_blocks,
)
from dntm.files import folder_of, write_text

if TYPE_CHECKING:
    from dntm.evaluation.meaning import Definitions, HiddenWords, Pairs, Predictions, Trials
    from dntm.evaluation.word_baselines import WordBaseline
    from dntm.model.scorer import Scorer

TITLES = {"x": "x of the model", "y": "y of the model", "g": "x of the model and topic vector"}
CANDIDATES = 10_000
"""Candidates for a hidden word: the most frequent words after the first 100."""
FIT_BYTES = 11_000_000
"""Bytes of --fit to read, about two million words."""


@dataclass(frozen=True, kw_only=True)
class EvaluateMeaning(Threads):
    """Compare the meaning that a model infers for unknown words with the true words or ratings.

    Prints one table for each of --text, --trials, --definitions and --pairs; docs/data.md describes
    the files. The baselines are the most frequent words and a bag of context words. --fit adds the
    linear map of "a la carte" (Khodak et al. 2018); --encoder adds a pretrained encoder.
    """

    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """A run folder, a checkpoint such as RUN/best, or "default" (the bundled model)."""
    text: tuple[Path, ...] = ()
    """Held-out text files or folders. Some known words are hidden, and the model has to predict
    them."""
    trials: Path | None = None
    """A file of invented words with similarity ratings. Columns: id, texts with ___ for the word
    (joined by @@), probes, ratings."""
    definitions: Path | None = None
    """A file of words and their definitions, with ___ in place of the word."""
    pairs: Path | None = None
    """A file of word pairs with similarity ratings."""
    fit: tuple[Path, ...] = ()
    """Training text for the word frequencies and the linear map of the baselines. About two million
    words are read, from randomly selected documents."""
    encoder: Path | None = None
    """A run of dntm pretrain to use as a baseline."""
    documents: Documents = "blank-line"
    """Text files: blank lines separate documents and each line is a paragraph (blank-line), or each
    file is a document and blank lines separate paragraphs (file)."""
    per_part: int = 5
    """Maximum number of words to hide in each part of a document (at most 24 sentences)."""
    seed: int = 1
    """Random seed for the hidden words, the documents of --fit and the intervals."""
    json: Path | None = None
    """Write the printed numbers to this JSON file."""

    def run(self) -> None:
        """Print one table per kind of test."""
        if not (self.text or self.trials or self.definitions or self.pairs):
            raise ValueError(
                "nothing to evaluate on: pass --text, --trials, --definitions or --pairs"
            )
        if self.per_part < 1:
            raise ValueError(f"per_part is {self.per_part}, expected at least 1")
        rated = [] if self.trials is None else read_trials(self.trials)
        defined = [] if self.definitions is None else read_definitions(self.definitions)
        compared = [] if self.pairs is None else read_pairs(self.pairs)
        self.set_threads()
        from dntm.evaluation.meaning import definitions, hidden_words, pairs, predict, trials
        from dntm.model.scorer import Scorer

        model = Scorer.load(folder_of(self.model))
        candidates, passages = self._hidden(model) if self.text else (np.zeros(0), [])
        texts = [trial.texts for trial in rated] + [[definition] for _, definition in defined]
        baselines = self._baselines(model, passages, texts) if passages or texts else {}
        numbers: dict[str, Any] = {"model": self.model, "seed": self.seed}
        if self.text:
            predictions = predict(model, passages, baselines, tqdm)
            hidden = hidden_words(passages, predictions, candidates)
            _print_hidden(hidden)
            numbers["hidden_words"] = asdict(hidden)
            if calibration := _print_calibration(model, passages, predictions["g"]):
                numbers["calibration"] = calibration
        if rated:
            correlated = trials(model, rated, baselines, seed=self.seed)
            _print_trials(correlated)
            numbers["trials"] = asdict(correlated)
        if defined:
            ranked = definitions(model, defined, baselines)
            _print_definitions(ranked)
            numbers["definitions"] = asdict(ranked)
        if compared:
            similar = pairs(model, compared)
            _print_pairs(similar)
            numbers["pairs"] = asdict(similar)
        if self.json:
            write_text(self.json, json.dumps(numbers, indent=2, allow_nan=False) + "\n")
            print(f"numbers: {self.json}")

    def _hidden(self, model: "Scorer") -> tuple[Any, list[Passage]]:
        """The rows of the candidates, and passages with hidden words."""
        from dntm.evaluation.meaning import candidate_words

        lexicon = Lexicon(model.vocabulary)
        rows, words = candidate_words(model, CANDIDATES)
        blocks = text_blocks(self.text, self.documents)
        parts = (part for block in blocks for part in parts_of(block, self.documents, lexicon))
        vocabulary = model.vocabulary
        found = list(hide_words(parts, words, vocabulary, most=self.per_part, seed=self.seed))
        if not found:
            raise ValueError(
                "no word of the text can be hidden: expected known words that occur twice"
            )
        return rows, found

    def _baselines(
        self, model: "Scorer", passages: Sequence[Passage], texts: Sequence[Sequence[str]]
    ) -> "dict[str, WordBaseline]":
        from dntm.evaluation.word_baselines import fit_context_baselines

        lexicon = Lexicon(model.vocabulary)
        if self.fit:
            blocks = sampled(list(text_blocks(self.fit, self.documents)), FIT_BYTES, self.seed)
            text = [
                encode(part, model.vocabulary).sentences
                for block in tqdm(blocks, "reading --fit", unit=" documents")
                for part in parts_of(block, self.documents, lexicon)
            ]
            bag, a_la_carte = fit_context_baselines(text, model)
            baselines: dict[str, WordBaseline] = {"bag of context": bag, "a la carte": a_la_carte}
        else:
            given = [gap_passage(text, lexicon) for text in texts]
            read = [passage.sentences for passage in (*passages, *given) if passage is not None]
            baselines = {"bag of context": fit_context_baselines(read, model, counted=False)[0]}
        if self.encoder:
            baselines["encoder"] = _encoder(self.encoder, model)
        return baselines


def _encoder(run: Path, model: "Scorer") -> "WordBaseline":
    """The encoder of a run; words that it does not know have a zero vector."""
    import torch

    from dntm.evaluation.word_baselines import encoder_baseline
    from dntm.model.checkpoint import best_of
    from dntm.model.pretrained_encoder import PretrainedEncoder
    from dntm.model.sentence_completion import SentenceCompletion

    pretrained = PretrainedEncoder.load(best_of(run))
    completion = SentenceCompletion.of(pretrained)
    lexicon = Lexicon(pretrained.vocabulary)
    first = len(model.vocabulary) - len(model.vocabulary.words)
    rows = np.array([UNK] * first + [lexicon.row(word) for word in model.vocabulary.words])
    words = completion.compared()[torch.from_numpy(rows)]
    words[torch.from_numpy(rows == UNK)] = 0
    return encoder_baseline(words, completion.contexts, rows)


def _print_hidden(found: "HiddenWords") -> None:
    print(
        f"{found.words:,} hidden words with {found.mentions:,} mentions in {found.parts:,} parts; "
        f"{found.candidates:,} candidates"
    )
    for name in dict.fromkeys(name for groups in found.ranks.values() for name in groups):
        count, _, band = name.partition(" of ")
        after = {"1": "after 1 mention", "2+": "from the second mention on"}
        title = after.get(count, f"after {count} mentions")
        print_ranks(
            f"{title}, words {band}" if band else title,
            {TITLES.get(method, method): groups[name] for method, groups in found.ranks.items()},
        )


def _print_definitions(found: "Definitions") -> None:
    print(
        f"{found.words:,} defined words, {found.candidates:,} candidates; left out: "
        f"{found.unknown:,} not in the vocabulary, {found.without_gap:,} without ___"
    )
    named = {TITLES.get(method, method): ranks for method, ranks in found.ranks.items()}
    print_ranks("after the definition", named)


def _print_calibration(
    model: "Scorer", passages: Sequence[Passage], g: "Predictions"
) -> dict[str, dict[str, float]]:
    """How often the hidden word is among the words shown to readers, by confidence."""
    from dntm.reader.meaning import CONFIDENCE, SHOWN, Meanings

    labels = model.vocabulary.labels()
    words = [labels[p.hidden[entity]] for p in passages for _, _, entity in p.mentions()]
    tried = Meanings(model.model, model.vocabulary).calibration(g.vectors, words)
    table = {
        label: {"cases": len(hits), "right": sum(hits) / len(hits)}
        for label in CONFIDENCE
        if (hits := [hit for found, hit in tried if found == label])
    }
    if table:
        print(f"share of mentions with the hidden word among the first {SHOWN}, by confidence")
    for label, row in table.items():
        print(f"  {label:<18} {row['right']:.3f} of {row['cases']:,}")
    return table


def _print_trials(found: "Trials") -> None:
    print(
        f"{found.trials:,} trials of {found.words:,} invented words; {found.unknown_probes:.1%} of "
        f"the probes are not in the vocabulary; counted as 0: {found.few_probes:,} trials with "
        f"fewer than two known probes, {found.constant:,} with constant ratings, "
        f"{found.without_gap:,} without ___"
    )
    rows = [["Spearman, mean over trials", "mean", "95 % interval"]]
    for method, c in found.correlations.items():
        low, high = c.interval
        rows.append([TITLES.get(method, method), f"{c.mean:.3f}", f"{low:.3f} to {high:.3f}"])
    print_table(rows)


def _print_pairs(found: "Pairs") -> None:
    print(
        f"{found.pairs:,} word pairs, {found.left_out:,} left out; Spearman: "
        f"x {found.x:.3f}, y {found.y:.3f}"
    )
