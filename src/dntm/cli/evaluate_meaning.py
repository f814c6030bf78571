"""`dntm evaluate-meaning`: how near what a model makes of unknown words is to what they are."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tyro
from tqdm import tqdm

from dntm.cli.runs import Threads, refuse_unused
from dntm.corpus.entities import Lexicon
from dntm.corpus.text import Documents
from dntm.corpus.vocabulary import UNK
from dntm.evaluation.passages import (
    Passage,
    gap_passage,
    parts_of,
    read_definitions,
    read_pairs,
    read_trials,
    sampled,
    text_blocks,
)
from dntm.files import write_text

if TYPE_CHECKING:
    from dntm.evaluation.guesses import Gaps, Way
    from dntm.evaluation.meaning import Definitions, HiddenWords, Pairs, RankSummary, Trials
    from dntm.model.text_model import TextModel

TITLES = {"x": "x of the model", "y": "y of the model", "g": "x of the model, with the topic"}
BYTES_A_WORD = 5.5


@dataclass(frozen=True, kw_only=True)
class EvaluateMeaning(Threads):
    """Compare what a model makes of unknown words with what they are, or with what people say.

    Beside the model stand the most frequent words, a bag of the context words and, where there is
    something to fit or to load it from, the linear map of "a la carte" and a pretrained encoder.
    """

    model: tyro.conf.Positional[str]
    """A run folder, a checkpoint such as RUN/best, or default: the model that comes with dntm."""
    text: tuple[Path, ...] = ()
    """Held-out text files, or folders of them: known words are hidden and to be found again."""
    trials: Path | None = None
    """Invented words with ratings: lines of id, texts with ___ joined by @@, probes, ratings."""
    definitions: Path | None = None
    """Lines of a word and its definition with ___ in its place."""
    pairs: Path | None = None
    """Word pairs with similarities."""
    fit: tuple[Path, ...] = ()
    """Training text for the word frequencies and the map of the ways beside the model."""
    fit_words: int = 2_000_000
    """About so many words of it, whole documents drawn at random."""
    encoder: Path | None = None
    """A pretraining run whose own guess stands beside the model."""
    documents: Documents = "blank-line"
    """Text files: one document between empty lines, each line a paragraph (blank-line), or one
    document a file, with empty lines between paragraphs (file)."""
    candidates: int = 10_000
    """A hidden word is looked for among so many words, the most frequent beyond the first 100."""
    per_part: int = 5
    """Words hidden at a time, in a part of at most 24 sentences."""
    limit: int | None = None
    """Read at most so many parts, spread evenly over the text."""
    seed: int = 1
    """Which words are hidden, which documents are fitted to, and the draws of intervals."""
    json: Path | None = None
    """Write all numbers to this file, too."""

    def run(self) -> None:
        """Print a table for each kind of test."""
        if not (self.text or self.trials or self.definitions or self.pairs):
            raise ValueError(
                "nothing to evaluate on: pass --text, --trials, --definitions, --pairs"
            )
        for name in ("candidates", "per_part", "limit", "fit_words"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"{name} is {value}, expected at least 1")
        self._refuse_unused()
        rated = [] if self.trials is None else read_trials(self.trials)
        defined = [] if self.definitions is None else read_definitions(self.definitions)
        compared = [] if self.pairs is None else read_pairs(self.pairs)
        self.set_threads()
        from dntm.evaluation.meaning import definitions, hidden_words, pairs, trials

        model = _load(self.model)
        candidates, passages = self._hidden(model) if self.text else (np.zeros(0), [])
        texts = [trial.texts for trial in rated] + [[definition] for _, definition in defined]
        ways = self._ways(model, passages, texts) if passages or texts else {}
        numbers: dict[str, Any] = {"model": self.model, "seed": self.seed}
        if self.text:
            hidden = hidden_words(model, passages, candidates, ways, _progress)
            _print_hidden(hidden)
            numbers["hidden_words"] = asdict(hidden)
            if sure := _print_how_sure(model, passages):
                numbers["how_sure"] = sure
        if rated:
            correlated = trials(model, rated, ways, seed=self.seed)
            _print_trials(correlated)
            numbers["trials"] = asdict(correlated)
        if defined:
            ranked = definitions(model, defined, ways)
            _print_definitions(ranked)
            numbers["definitions"] = asdict(ranked)
        if compared:
            similar = pairs(model, compared)
            _print_pairs(similar)
            numbers["pairs"] = asdict(similar)
        if self.json:
            write_text(self.json, json.dumps(numbers, indent=2, allow_nan=False) + "\n")
            print(f"numbers: {self.json}")

    def _refuse_unused(self) -> None:
        if not self.text:
            refuse_unused(self, "candidates per_part limit", "without --text")
        if not self.fit:
            refuse_unused(self, "fit_words", "without --fit")
        if not (self.text or self.fit):
            refuse_unused(self, "documents", "without --text or --fit")
        if not (self.text or self.trials or self.definitions):
            refuse_unused(self, "fit encoder", "on --pairs: these compare embeddings of words")
        if not (self.text or self.trials or self.fit):
            refuse_unused(self, "seed", "without --text, --trials or --fit: nothing is drawn")

    def _hidden(self, model: "TextModel") -> tuple[Any, list[Passage]]:
        from dntm.evaluation.meaning import candidate_words, hide_words

        lexicon = Lexicon(model.vocabulary)
        rows, words = candidate_words(model, self.candidates)
        blocks = text_blocks(self.text, self.documents)
        found = hide_words(
            (part for block in blocks for part in parts_of(block, self.documents, lexicon)),
            words,
            per_part=self.per_part,
            entities=model.vocabulary.entities,
            seed=self.seed,
        )
        most = min(self.limit or len(found), len(found))
        spread = np.linspace(0, len(found), most, endpoint=False, dtype=np.int64)
        return rows, [found[i] for i in spread]

    def _ways(
        self, model: "TextModel", passages: Sequence[Passage], texts: Sequence[Sequence[str]]
    ) -> "dict[str, Way]":
        from dntm.evaluation.guesses import fit

        lexicon = Lexicon(model.vocabulary)
        if self.fit:
            bag, a_la_carte = fit(self._training_text(lexicon), model)
            ways: dict[str, Way] = {"bag of context": bag, "a la carte": a_la_carte}
        else:
            given = [gap_passage(text, lexicon) for text in texts]
            asked = [passage.sentences for passage in (*passages, *given) if passage is not None]
            ways = {"bag of context": fit(asked, model, counted=False)[0]}
        if self.encoder:
            ways["encoder"] = _encoder(self.encoder, model)
        return ways

    def _training_text(self, lexicon: Lexicon) -> list[list[list[int]]]:
        """Some documents of --fit, entities as unknown words."""
        size = int(self.fit_words * BYTES_A_WORD)
        blocks = sampled(list(text_blocks(self.fit, self.documents)), size, self.seed)
        return [
            [[max(token, UNK) for token in sentence] for sentence in part]
            for block in tqdm(blocks, "reading --fit", unit=" documents")
            for part in parts_of(block, self.documents, lexicon)
        ]


def _load(model: str) -> "TextModel":
    from dntm.model.checkpoint import SHIPPED
    from dntm.model.text_model import TextModel

    return TextModel.load(SHIPPED if model == "default" else model)


def _encoder(run: Path, model: "TextModel") -> "Gaps":
    """The encoder's guess, its words by the rows of the model; words that it lacks have none."""
    import torch

    from dntm.evaluation.guesses import Gaps
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
    return Gaps(words, completion.contexts, rows)


def _progress(passages: Sequence[Passage]) -> "tqdm[Passage]":
    return tqdm(passages, "reading", unit=" parts")


def _print_hidden(found: "HiddenWords") -> None:
    print(
        f"{found.words:,} hidden words with {found.mentions:,} mentions in {found.parts:,} parts; "
        f"{found.candidates:,} words to choose from"
    )
    groups = dict.fromkeys(name for by_count in found.ranks.values() for name in by_count)
    for name in groups:
        count, _, frequency = name.partition(" of ")
        after = {"1": "after 1 mention", "2+": "from the second mention on"}
        told = after.get(count, f"after {count} mentions")
        _print_ranks(
            f"{told}, words {frequency}" if frequency else told,
            {way: by_count[name] for way, by_count in found.ranks.items()},
        )


def _print_definitions(found: "Definitions") -> None:
    print(
        f"{found.words:,} defined words, {found.candidates:,} to choose from; left out: "
        f"{found.unknown:,} that the vocabulary lacks, {found.without_gap:,} without ___"
    )
    _print_ranks("after the definition", found.ranks)


def _print_ranks(title: str, ranks: "Mapping[str, RankSummary]") -> None:
    cases = next(iter(ranks.values())).cases
    head = f"{title} ({cases:,})"
    print(f"{head:<50}{'recall at 1':>12}{'at 10':>8}{'at 100':>8}{'MRR':>8}{'median rank':>13}")
    for way, s in ranks.items():
        shares = "".join(f"{v:>{w}.3f}" for v, w in zip(s.recall.values(), (12, 8, 8), strict=True))
        print(
            f"  {TITLES.get(way, way):<48}{shares}{s.reciprocal_rank:>8.3f}{s.median_rank:>13,.0f}"
        )


def _print_how_sure(model: "TextModel", passages: Sequence[Passage]) -> dict[str, dict[str, float]]:
    """How often the hidden word is among those that a page shows, by how sure it says it is."""
    from dntm.evaluation.meaning import topics_of
    from dntm.evaluation.topic import Topic, with_topic
    from dntm.reader.meaning import SHOWN, SURE, Meanings

    meanings = Meanings(model.model, model.vocabulary)
    topic = Topic(model.word_embeddings()[0], model.vocabulary.entities)
    labels = model.vocabulary.labels()
    tried: list[tuple[str, bool]] = []
    read = model.mention_embeddings([passage.sentences for passage in passages])
    for passage, found in zip(passages, read, strict=True):
        asked = np.isin(found.row, list(passage.asked))
        words = [labels[passage.asked[int(row)]] for row in found.row[asked]]
        tried += meanings.tried(with_topic(found.x[asked], topics_of(passage, topic)), words)
    right = {phrase: [hit for said, hit in tried if said == phrase] for phrase in SURE}
    table = {
        phrase: {"cases": len(hits), "right": sum(hits) / len(hits)}
        for phrase, hits in right.items()
        if hits
    }
    if table:
        print(f"how sure is said, and how often the word is among the {SHOWN} that are shown")
    for phrase, row in table.items():
        print(f"  {phrase:<14} {row['right']:.3f} of {row['cases']:,}")
    return table


def _print_trials(found: "Trials") -> None:
    print(
        f"{found.trials:,} trials of {found.words:,} invented words; the vocabulary lacks "
        f"{found.unknown_probes:.1%} of the probes; counted as 0: {found.few_probes:,} trials with "
        f"fewer than two known probes, {found.constant:,} with constant ratings, "
        f"{found.without_gap:,} without ___"
    )
    print(f"{'Spearman, mean over trials':<40}{'mean':>8}{'95 % interval':>20}")
    for way, correlation in found.correlations.items():
        low, high = correlation.interval
        name = TITLES.get(way, way)
        print(f"  {name:<38}{correlation.mean:>8.3f}{f'{low:.3f} to {high:.3f}':>20}")


def _print_pairs(found: "Pairs") -> None:
    print(
        f"{found.pairs:,} pairs of words, {found.left_out:,} left out; Spearman: "
        f"x {found.x:.3f}, y {found.y:.3f}"
    )
