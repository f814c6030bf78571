"""Engine: a dynamic model and the static model it is compared with read texts together.

The static model is the first of these that is available:

    a baseline whose checkpoint is given
    a baseline in the folder `static` of the checkpoint
    the model itself with d_e = 0, that is without memory

Both compute in double precision by default, so that results do not depend on what else is in the
batch: they differ by 3e-6 nats between batches in single precision, and by 1e-14 in double
precision. Whole texts are read in batches, a window of sentences at a time; a stream is read
sentence by sentence. Both give one `SentenceScores` per sentence.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from dntm.corpus.document import Token
from dntm.corpus.entities import Lexicon
from dntm.corpus.rows import DocumentRows, Lender, Loan
from dntm.corpus.vocabulary import BOS, EOS, UNK, Vocabulary
from dntm.model.checkpoint import best_of, folder_of
from dntm.model.fast.window import EncodedDocument, Loans, windows
from dntm.model.language_model import DynamicTextModel
from dntm.model.reading_state import ReadingState
from dntm.model.text_model import TextModel
from dntm.model.trace import Trace, trace
from dntm.reader.text import PreparedText

SENTENCES = 20
"""Sentences of a text per window."""
_RANKED = 256
"""Tokens whose distributions are in memory at the same time."""
Precision = Literal["double", "single"]
Values = Float[np.ndarray, " predicted"]


@dataclass(frozen=True, slots=True)
class ModelPair:
    """Two models over one vocabulary."""

    dynamic: DynamicTextModel
    static: DynamicTextModel
    vocabulary: Vocabulary
    static_name: str
    """What the static model is, in words."""

    @classmethod
    def load(
        cls, path: Path | str | None, static: Path | str | None, precision: Precision = "double"
    ) -> "ModelPair":
        """Load a run folder or a checkpoint, and its static model."""
        folder = folder_of(path)
        model = TextModel.load(folder)
        bundled = best_of(folder) / "static"
        if static is not None:
            other, name = baseline(Path(static), model.vocabulary), f"the baseline {static}"
        elif bundled.is_dir():
            other, name = baseline(bundled, model.vocabulary), "the static baseline"
        else:
            other, name = without_memory(model.model), "the same weights without memory"
        dynamic, other = _prepared(model.model, precision), _prepared(other, precision)
        return cls(dynamic, other, model.vocabulary, name)


def without_memory(model: DynamicTextModel) -> DynamicTextModel:
    """The baseline with the model's weights: the model as long as every d_e is zero."""
    if model.config.variant == "baseline":
        return model
    with torch.device("meta"):  # every one of its tensors is replaced
        static = DynamicTextModel(replace(model.config, variant="baseline", naming=False))
    static.lstm, static.output.b = model.lstm, model.output.b
    static.salience, static.pointer = model.salience, model.pointer
    static.x.weight, static.output.y.weight = model.x.weight, model.output.y.weight
    return static


def baseline(path: Path, vocabulary: Vocabulary) -> DynamicTextModel:
    """Load a static model; ValueError if it is not a baseline over this vocabulary."""
    static = TextModel.load(path)
    if static.model.config.variant != "baseline":
        raise ValueError(
            f"{path} is the variant {static.model.config.variant!r}, expected a baseline"
        )
    if static.vocabulary != vocabulary:
        raise ValueError(
            f"{path} has another vocabulary than the dynamic model, "
            "expected a baseline trained on the same dataset"
        )
    return static.model


def _prepared(model: DynamicTextModel, precision: Precision) -> DynamicTextModel:
    if precision not in ("double", "single"):
        raise ValueError(f"precision {precision!r}, expected double or single")
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
    before: Float[Tensor, "entities context_dim"]
    after: Float[Tensor, "entities context_dim"]
    """d of every slot."""
    rows: Sequence[int]
    """The sentence's rows, with <bos> and <eos>."""


class States(NamedTuple):
    """Both models' states after some sentences, of one text or of a batch."""

    dynamic: ReadingState
    static: ReadingState


class Engine:
    """Both models, read together."""

    def __init__(self, models: ModelPair) -> None:
        self.models = models
        self.lexicon = Lexicon(models.vocabulary)
        counts = models.vocabulary.counts or ()
        self._log_total = math.log(sum(counts) + len(counts)) if counts else 0.0

    def log_frequency(self, row: int) -> float | None:
        """Log share of a row in the training text, add-one smoothed; None without counts."""
        counts = self.models.vocabulary.counts
        return math.log(counts[row] + 1) - self._log_total if counts else None

    def initial(self, texts: int = 1) -> States:
        """Both models' states before the first sentence."""
        models = (self.models.dynamic, self.models.static)
        return States(*(model.initial_state(texts) for model in models))

    def slots(self) -> Lender:
        """Assigns the model's entity slots to the entities of a text."""
        # The next unseen entity must have the same slot in a text with a swapped mention.
        in_order = self.models.dynamic.config.newcomer
        return Lender(self.models.vocabulary.entities, in_order=in_order)

    def encode(self, sentences: Iterable[Sequence[Token]], slots: Lender) -> DocumentRows:
        """The rows of the next sentences, and which slots are reassigned in each."""
        encoded: list[list[int]] = []
        reassigned: list[list[Loan]] = []
        for tokens in sentences:
            assigned, changes = slots.read(tokens)
            rows = [
                self.lexicon.row(token)
                if isinstance(token, str)
                else (UNK if slot is None else self.models.vocabulary.entity_row(slot))
                for token, slot in zip(tokens, assigned, strict=True)
            ]
            encoded.append([BOS, *rows, EOS])
            reassigned.append(changes)
        return DocumentRows(encoded, reassigned)

    def advance(
        self,
        texts: Sequence[EncodedDocument],
        changes: Loans,
        states: States,
        pool: Executor | None = None,
    ) -> tuple[list[list[SentenceScores]], States]:
        """Read some sentences of each text: the scores of each sentence, and the states after them.

        In a `pool` the static model reads at the same time as the dynamic one.
        """

        def read(model: DynamicTextModel, state: ReadingState) -> Trace:
            return trace(model, model.plan(texts, loans=changes), state)

        models = self.models
        submitted = pool and pool.submit(read, models.static, states.static)
        dynamic = read(models.dynamic, states.dynamic)
        static = submitted.result() if submitted else read(models.static, states.static)
        return _by_sentence(texts, dynamic, static), States(dynamic.state, static.state)

    def read(self, texts: Sequence[PreparedText]) -> Iterator[list[list[SentenceScores]]]:
        """Read whole texts in one batch; each window gives the next sentences of every text."""
        encoded = [self.encode(text.tokens(), self.slots()) for text in texts]
        sentences, changes = [text.sentences for text in encoded], [text.loans for text in encoded]
        states = self.initial(len(texts))
        with ThreadPoolExecutor(1) as pool:
            for window in windows(sentences, SENTENCES, changes):
                before = States(*(state.select(window.kept) for state in states))
                found, states = self.advance(window.sentences, window.loans, before, pool)
                scores: list[list[SentenceScores]] = [[] for _ in texts]
                for document, some in zip(window.documents, found, strict=True):
                    scores[document] = some
                yield scores

    def sentence_nats(
        self, sentences: Sequence[Sequence[int]], changes: Sequence[Loan], states: States
    ) -> list[tuple[float, float]]:
        """The surprisal of each of these alternative next sentences, under both models."""
        found = []
        for model, state in zip((self.models.dynamic, self.models.static), states, strict=True):
            window = model.plan(
                [[rows] for rows in sentences],
                [False] * len(sentences),
                loans=[[changes]] * len(sentences),
            )
            scores, _ = model.score(window, state.select([0] * len(sentences)))
            found.append([float(-values.sum()) for values in scores])
        return list(zip(*found, strict=True))

    def ranks(self, text: PreparedText) -> list[int]:
        """The rank of every predicted token among all rows, 1 for the most likely."""
        model, encoded = self.models.dynamic, self.encode(text.tokens(), self.slots())
        state, found = model.initial_state(1), list[int]()
        for rows, changes in zip(encoded.sentences, encoded.loans, strict=True):
            window, after = model.plan([[rows]], loans=[[changes]]), state
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
    state: ReadingState,
    rows: Sequence[int],
    changes: Sequence[Loan] = (),
) -> Float[Tensor, " vocabulary"]:
    """The next token's log-probabilities after the first `rows` of a sentence."""
    window = model.plan([[rows]], [False], loans=[[changes]])
    _, distribution, _ = model.log_distribution(window, state, [len(rows) - 1])
    return distribution[0]


def _by_sentence(
    texts: Sequence[Sequence[Sequence[int]]], dynamic: Trace, static: Trace
) -> list[list[SentenceScores]]:
    """The scores of each sentence of each text."""
    found: list[list[SentenceScores]] = []
    firsts = np.cumsum([0, *map(len, texts)])
    values = (dynamic.scores, static.scores, dynamic.entropies, static.entropies)
    for text, first, *columns in zip(texts, firsts, *values, strict=False):
        own = slice(first, first + len(text))
        cuts = np.cumsum([len(sentence) - 1 for sentence in text])[:-1]
        parts = (np.split(column, cuts) if len(text) else [] for column in columns)
        scores = zip(*parts, dynamic.begins[own], dynamic.ends[own], text, strict=True)
        found.append([SentenceScores(*score) for score in scores])
    return found
