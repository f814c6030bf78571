"""Engine: a dynamic model and its static baseline read texts together.

The static baseline is the first of these that is available:

    a baseline whose checkpoint is given
    a baseline in the folder `static` of the checkpoint
    the model itself without memory (d_e = 0)

Both compute in double precision by default (single with a pretrained core), so that results do not
depend on the rest of the batch: between batches, they differ by up to 1e-5 nats in single precision
and by 1e-14 nats in double precision. Whole texts are read in batches, a window of sentences at a
time; a stream is read sentence by sentence. Both give one `SentenceScores` per sentence.
"""

import math
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from dntm.corpus.document import Token
from dntm.corpus.entities import Lexicon
from dntm.corpus.entity_slots import (
    DocumentRows,
    Eviction,
    SentenceStrings,
    SlotAllocator,
    encode_sentences,
    with_strings,
)
from dntm.corpus.vocabulary import Vocabulary, entity_rows
from dntm.files import folder_of
from dntm.model.checkpoint import best_of
from dntm.model.extensions.pointer import Pointer
from dntm.model.fast.window import windows
from dntm.model.language_model import MEMORY, BlockScores, DynamicTextModel, RowScores
from dntm.model.parameters import State
from dntm.model.scorer import Scorer, first_rows
from dntm.model.spelling import Spelling, string_of
from dntm.model.strings import StringReader, score_strings
from dntm.reader.text import PreparedText, Word

SENTENCES = 20
"""Sentences of a text per window; 1 if the strings of mentions are scored by pieces."""
_RANKED = 256
"""Tokens whose distributions are in memory at the same time."""
Precision = Literal["auto", "double", "single"]
"""auto: double, or single for a pretrained core."""
Values = Float[np.ndarray, " predicted"]


@dataclass(frozen=True, slots=True)
class ModelPair:
    """Two models over one vocabulary."""

    dynamic: DynamicTextModel
    static: DynamicTextModel
    vocabulary: Vocabulary
    static_name: str
    """A description of the static baseline."""
    spelling: Spelling | None = None
    """String probabilities; None without spelling.json."""

    @classmethod
    def load(
        cls,
        path: Path | str | None,
        static: Path | str | None,
        precision: Precision = "auto",
        without: Collection[str] = (),
    ) -> "ModelPair":
        """Load a run folder or a checkpoint and its static baseline, without certain parts."""
        folder = folder_of(path)
        model = Scorer.load(folder)
        dynamic, bundled = model.model.without(without), best_of(folder) / "static"
        if static is not None:
            other, name = baseline(Path(static), model.vocabulary), f"the baseline {static}"
        elif bundled.is_dir():
            other, name = baseline(bundled, model.vocabulary), "the static baseline"
        else:
            other, name = model.model, "the same weights without memory"
        other = other.without({*without, MEMORY}.intersection(other.parts))
        dynamic, other = _for_inference(dynamic, precision), _for_inference(other, precision)
        spelling = Spelling.load(best_of(folder))
        if spelling is not None and (spelling.ends is None) != model.vocabulary.ends:
            raise ValueError(f"{folder}: spelling.json belongs to another kind of model")
        for term in (*dynamic.ordered_terms, *other.ordered_terms):
            if isinstance(term, Pointer):
                term.copies_unknown = spelling is None
        return cls(dynamic, other, model.vocabulary, name, spelling)


def baseline(path: Path, vocabulary: Vocabulary) -> DynamicTextModel:
    """Load a static baseline; ValueError if it has dynamic embeddings or another vocabulary."""
    static = Scorer.load(path)
    if static.model.config.variant != "baseline":
        raise ValueError(
            f"{path} is the variant {static.model.config.variant!r}, expected a baseline"
        )
    if static.vocabulary != vocabulary:
        raise ValueError(
            f"{path} and the dynamic model have different vocabularies, "
            "expected a baseline trained on the same dataset"
        )
    return static.model


def _for_inference(model: DynamicTextModel, precision: Precision) -> DynamicTextModel:
    if precision not in get_args(Precision):
        raise ValueError(f"precision {precision!r}, expected auto, double or single")
    if precision == "auto":
        precision = "single" if model.config.is_pretrained else "double"
    cast = model.double() if precision == "double" else model.float()
    return cast.eval().requires_grad_(requires_grad=False)


@dataclass(frozen=True, slots=True)
class SentenceScores:
    """What both models compute for one sentence."""

    dynamic: Values
    static: Values
    """Log-probabilities in nats."""
    entropy: Values
    static_entropy: Values
    expected: Float[Tensor, "mentions hidden_dim"]
    """The states of the dynamic model's core before each mention."""
    before: Float[Tensor, "entities context_dim"]
    after: Float[Tensor, "entities context_dim"]
    """d of every slot."""
    rows: Sequence[int]
    """<bos>, and the row of every token; of a token with several rows, the first."""
    strings: SentenceStrings | None = None
    others: Sequence[RowScores] = ()
    """Scores of other rows under both models, from which strings are scored."""

    def by_token(self, widths: Sequence[int]) -> "SentenceScores":
        """From scores of rows to scores of tokens; an entropy is that before the first row."""
        if not widths:
            return self
        first = first_rows(widths)
        return replace(
            self,
            dynamic=np.add.reduceat(self.dynamic, first),
            static=np.add.reduceat(self.static, first),
            entropy=self.entropy[first],
            static_entropy=self.static_entropy[first],
            rows=[self.rows[0], *(self.rows[place + 1] for place in first)],
        )


class States(NamedTuple):
    """Both models' states after some sentences, of one text or of a batch."""

    dynamic: State
    static: State


class Engine:
    """Both models, read together."""

    def __init__(self, models: ModelPair) -> None:
        self.models = models
        self.lexicon = Lexicon(models.vocabulary)
        counts = models.vocabulary.counts or ()
        self._log_total = math.log(sum(counts) + len(counts)) if counts else 0.0

    @property
    def sentences(self) -> int:
        """Sentences of a text per window."""
        spelling = self.models.spelling
        return SENTENCES if spelling is None or spelling.ends is None else 1

    def log_frequency(self, row: int) -> float | None:
        """Log share of a row in the training text, add-one smoothed; None without counts."""
        counts = self.models.vocabulary.counts
        return math.log(counts[row] + 1) - self._log_total if counts else None

    def initial(self, texts: int = 1) -> States:
        """Both models' states before the first sentence."""
        models = (self.models.dynamic, self.models.static)
        return States(*(model.initial_state(texts) for model in models))

    def slots(self) -> SlotAllocator:
        """Assigns the model's entity slots to the entities of a text."""
        return SlotAllocator(self.models.vocabulary.entities, evicts=True)

    def strings(self, models: int = 2) -> StringReader | None:
        """A scorer of strings for this number of models; None without a spelling."""
        spelling, entities = self.models.spelling, self.models.vocabulary.entities
        return None if spelling is None else StringReader(spelling, entities, models)

    def encode(self, sentences: Iterable[Sequence[Token]], slots: SlotAllocator) -> DocumentRows:
        """The rows of the next sentences, and which slots are reassigned in each."""
        return encode_sentences(sentences, self.models.vocabulary, slots, self.lexicon.spelled)

    def encode_words(
        self, sentences: Sequence[Sequence[Word]], slots: SlotAllocator
    ) -> DocumentRows:
        """Like `encode`, with the strings of all tokens if the model has a spelling."""
        encoded = self.encode(([word.token for word in words] for words in sentences), slots)
        if self.models.spelling is None:
            return encoded
        vocabulary = self.models.vocabulary
        strings = [[(w.token, string_of(w.words, vocabulary)) for w in own] for own in sentences]
        return with_strings(encoded, strings, vocabulary)

    def advance(
        self,
        texts: Sequence[DocumentRows],
        states: States,
        pool: Executor | None = None,
    ) -> tuple[list[list[SentenceScores]], States]:
        """Read some sentences of each text: the scores of each sentence, and the states after them.

        With a `pool`, the static baseline reads at the same time as the dynamic model.
        """
        static_model = (self.models.static, texts, states.static)
        submitted = pool and pool.submit(score_strings, *static_model)
        dynamic = score_strings(self.models.dynamic, texts, states.dynamic)
        static = submitted.result() if submitted else score_strings(*static_model)
        return _by_sentence(texts, dynamic, static), States(dynamic.state, static.state)

    def read(self, texts: Sequence[PreparedText]) -> Iterator[list[list[SentenceScores]]]:
        """Read whole texts in one batch; each window gives the next sentences of every text."""
        encoded = [self.encode_words(text.sentences, self.slots()) for text in texts]
        sentences = [text.sentences for text in encoded]
        evictions = [text.evictions for text in encoded]
        states = self.initial(len(texts))
        with ThreadPoolExecutor(1) as pool:
            for window in windows(sentences, self.sentences, evictions):
                before = States(*(state.select(window.kept) for state in states))
                some = [encoded[d].part(window.start, self.sentences) for d in window.documents]
                found, states = self.advance(some, before, pool)
                scores: list[list[SentenceScores]] = [[] for _ in texts]
                for document, own in zip(window.documents, found, strict=True):
                    scores[document] = own
                yield scores

    def sentence_nats(
        self, sentences: Sequence[Sequence[int]], evictions: Sequence[Eviction], states: States
    ) -> list[tuple[float, float]]:
        """The surprisal of each of these alternative next sentences, under both models."""
        found = []
        for model, state in zip((self.models.dynamic, self.models.static), states, strict=True):
            window = model.plan(
                [[rows] for rows in sentences],
                [False] * len(sentences),
                evictions=[[evictions]] * len(sentences),
            )
            scores, _ = model.score(window, state.select([0] * len(sentences)))
            found.append([float(-values.sum()) for values in scores])
        return list(zip(*found, strict=True))

    def ranks(self, text: PreparedText) -> list[int]:
        """The rank of every predicted token among all rows, 1 for the most likely."""
        if not self.models.vocabulary.ends:
            raise ValueError("ranks need one row per word, not pieces of words")
        model, encoded = self.models.dynamic, self.encode(text.tokens(), self.slots())
        state, found = model.initial_state(1), list[int]()
        for rows, evictions in zip(encoded.sentences, encoded.evictions, strict=True):
            window, after = model.plan([[rows]], evictions=[[evictions]]), state
            for start in range(0, len(rows) - 1, _RANKED):
                positions = range(start, min(start + _RANKED, len(rows) - 1))
                _, log_p, after = model.log_distribution(window, state, positions)
                targets = torch.tensor(rows)[[place + 1 for place in positions]]
                own = log_p.gather(1, targets.unsqueeze(1))
                found += ((log_p > own).sum(1) + 1).tolist()
            state = after
        return found


def next_token(
    model: DynamicTextModel,
    state: State,
    rows: Sequence[int],
    evictions: Sequence[Eviction] = (),
) -> Float[Tensor, " vocabulary"]:
    """The next token's log-probabilities after the first `rows` of a sentence."""
    window = model.plan([[rows]], [False], evictions=[[evictions]])
    _, distribution, _ = model.log_distribution(window, state, [len(rows) - 1])
    return distribution[0]


def _by_sentence(
    texts: Sequence[DocumentRows], dynamic: BlockScores, static: BlockScores
) -> list[list[SentenceScores]]:
    """The scores of each sentence of each text."""
    found: list[list[SentenceScores]] = []
    slots = range(*entity_rows(dynamic.begins.shape[1]).indices(sys.maxsize))
    firsts = np.cumsum([0, *(len(text.sentences) for text in texts)])
    for d, (text, first) in enumerate(zip(texts, firsts, strict=False)):
        own = slice(first, first + len(text.sentences))
        cuts = np.cumsum([len(sentence) - 1 for sentence in text.sentences])[:-1]
        values = (dynamic.log_p, static.log_p, dynamic.entropies, static.entropies)
        parts = (np.split(column[d], cuts) for column in values)
        mentions = [sum(row in slots for row in sentence) for sentence in text.sentences]
        expected = torch.split(dynamic.expected[d], mentions)
        states = (expected, dynamic.begins[own], dynamic.ends[own], text.sentences)
        scores = [SentenceScores(*score) for score in zip(*parts, *states, strict=True)]
        if text.widths:
            scores = [s.by_token(w) for s, w in zip(scores, text.widths, strict=True)]
        if text.strings:
            both = (scored.rows[d].split(cuts) for scored in (dynamic, static))
            each = zip(scores, text.strings, zip(*both, strict=True), strict=True)
            scores = [replace(s, strings=t, others=rows) for s, t, rows in each]
        found.append(scores)
    return found
