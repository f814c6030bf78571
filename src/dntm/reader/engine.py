"""Engine: a dynamic model and the static one it is compared with, reading texts together.

The static model is, in this order,

    a baseline whose checkpoint is given;
    a baseline in the folder `static` of the checkpoint;
    the same weights with d_e = 0 for ever: the model without its memory.

Both compute in double precision unless told otherwise, so that no number depends on what else is
read in the same batch: single precision differs by 3e-6 nats between batches, double by 1e-14.
Whole texts are read side by side, a window of sentences at a time; a stream reads one sentence at
a time. Either way there is one step for each sentence.
"""

import math
from collections.abc import Iterator, Sequence
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
from dntm.reader.text import PreparedText, Word

SENTENCES = 20
"""Sentences of a text in a window."""
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
    static_is: str
    """What the static model is, in words."""

    @classmethod
    def load(
        cls,
        path: Path | str | None,
        static: Path | str | None,
        precision: Precision = "double",
        *,
        cache: bool = False,
    ) -> "ModelPair":
        """Load a run folder or a checkpoint, and the static model beside it.

        With `cache` both have the neural cache that their checkpoints carry.
        """
        folder = folder_of(path)
        inside = best_of(folder) / "static"
        model = TextModel.load(folder, cache=cache)
        if static is None and inside.is_dir():
            static = inside
        if static is None:
            twin, static_is = without_memory(model.model), "the same weights with d = 0"
        else:
            twin = baseline(Path(static), model.vocabulary, cache=cache)
            static_is = f"{static}"
        dynamic, twin = (_ready(m, precision) for m in (model.model, twin))
        return cls(dynamic, twin, model.vocabulary, static_is)


def without_memory(model: DynamicTextModel) -> DynamicTextModel:
    """The baseline with the model's weights: what the model is as long as every d_e is zero."""
    if model.config.variant == "baseline":
        return model
    with torch.device("meta"):  # every one of its tensors is replaced
        static = DynamicTextModel(replace(model.config, variant="baseline", naming=False))
    static.lstm, static.output.b = model.lstm, model.output.b
    static.salience, static.pointer, static.cache = model.salience, model.pointer, model.cache
    static.x.weight, static.output.y.weight = model.x.weight, model.output.y.weight
    return static


def baseline(path: Path, vocabulary: Vocabulary, *, cache: bool = False) -> DynamicTextModel:
    """Load the static model of a pair; ValueError where it cannot be one."""
    static = TextModel.load(path, cache=cache)
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


def _ready(model: DynamicTextModel, precision: Precision) -> DynamicTextModel:
    if precision not in ("double", "single"):
        raise ValueError(f"precision {precision!r}, expected double or single")
    cast = model.double() if precision == "double" else model.float()
    return cast.eval().requires_grad_(requires_grad=False)


@dataclass(frozen=True, slots=True)
class Step:
    """What both models say of one sentence."""

    dynamic: Values
    static: Values
    """Log-probabilities in nats."""
    entropy: Values
    static_entropy: Values
    before: Float[Tensor, "entities context_dim"]
    after: Float[Tensor, "entities context_dim"]
    """d of every row."""
    rows: Sequence[int]
    """Of the sentence's tokens, <bos> and <eos> around them."""


class States(NamedTuple):
    """Both models' states after some sentences, of one text or of a batch."""

    dynamic: ReadingState
    static: ReadingState


class Frequencies:
    """Log-shares of the training text, where the vocabulary knows its counts (one added to all)."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        counts = vocabulary.counts
        self._total = sum(counts) + len(counts) if counts else 0
        self._counts = counts or ()

    def of(self, row: int) -> float | None:
        """The natural logarithm of a row's share; None where it is not known."""
        return math.log((self._counts[row] + 1) / self._total) if self._total else None


class Engine:
    """Both models, read together."""

    def __init__(self, models: ModelPair) -> None:
        self.models = models
        self.lexicon = Lexicon(models.vocabulary)
        self.frequencies = Frequencies(models.vocabulary)

    def initial(self, texts: int = 1) -> States:
        """Both models' states before the first sentence."""
        models = (self.models.dynamic, self.models.static)
        return States(*(model.initial_state(texts) for model in models))

    def rows(self, tokens: Sequence[Token], lender: Lender) -> tuple[list[int], list[Loan]]:
        """The rows of the next sentence's tokens, without <bos> and <eos>, and its loans."""
        owned, loans = lender.read(tokens)
        vocabulary = self.models.vocabulary
        rows = [
            self.lexicon.row(token)
            if isinstance(token, str)
            else (UNK if row is None else vocabulary.entity_row(row))
            for token, row in zip(tokens, owned, strict=True)
        ]
        return rows, loans

    def encode(self, sentences: Sequence[Sequence[Word]]) -> DocumentRows:
        """The rows of a whole text, and what changes hands."""
        lender = self.lender()
        encoded = [self.rows([w.token for w in words], lender) for words in sentences]
        return DocumentRows(
            [[BOS, *rows, EOS] for rows, _ in encoded], [loans for _, loans in encoded]
        )

    def lender(self) -> Lender:
        """Gives rows to the entities of a text."""
        # A newcomer of a swapped or unfinished text is the next one, too.
        in_order = self.models.dynamic.config.newcomer
        return Lender(self.models.vocabulary.entities, in_order=in_order)

    def advance(
        self,
        texts: Sequence[EncodedDocument],
        loans: Loans,
        states: States,
        pool: Executor | None = None,
    ) -> tuple[list[list[Step]], States]:
        """Read some sentences of each text: a step for each, and the states after them.

        In a `pool` the static model reads while the dynamic one does.
        """

        def read(model: DynamicTextModel, state: ReadingState) -> Trace:
            return trace(model, model.plan(texts, loans=loans), state)

        models = self.models
        beside = pool and pool.submit(read, models.static, states.static)
        dynamic = read(models.dynamic, states.dynamic)
        static = beside.result() if beside else read(models.static, states.static)
        return _steps(texts, dynamic, static), States(dynamic.state, static.state)

    def read(self, texts: Sequence[PreparedText]) -> Iterator[list[list[Step]]]:
        """Read whole texts side by side; each window gives some more steps of every text."""
        encoded = [self.encode(text.sentences) for text in texts]
        sentences, loans = [text.sentences for text in encoded], [text.loans for text in encoded]
        states = self.initial(len(texts))
        with ThreadPoolExecutor(1) as pool:
            for window in windows(sentences, SENTENCES, loans):
                before = States(*(state.select(window.kept) for state in states))
                found, states = self.advance(window.sentences, window.loans, before, pool)
                steps: list[list[Step]] = [[] for _ in texts]
                for document, some in zip(window.documents, found, strict=True):
                    steps[document] = some
                yield steps

    def sentence_nats(
        self, sentences: Sequence[Sequence[int]], loans: Sequence[Loan], states: States
    ) -> list[tuple[float, float]]:
        """The surprisal of each of these sentences (rows) if it came next, under both models."""
        found = []
        for model, state in zip((self.models.dynamic, self.models.static), states, strict=True):
            window = model.plan(
                [[rows] for rows in sentences],
                [False] * len(sentences),
                loans=[[loans]] * len(sentences),
            )
            scores, _ = model.score(window, state.select([0] * len(sentences)))
            found.append([float(-values.sum()) for values in scores])
        return list(zip(*found, strict=True))

    def ranks(self, text: PreparedText) -> list[list[int]]:
        """The rank of every predicted token of each sentence, 1 for the likeliest of all rows."""
        model, encoded = self.models.dynamic, self.encode(text.sentences)
        state, found = model.initial_state(1), []
        for rows, loans in zip(encoded.sentences, encoded.loans, strict=True):
            ranked: list[int] = []
            window, after = model.plan([[rows]], loans=[[loans]]), state
            for start in range(0, len(rows) - 1, _RANKED):
                positions = range(start, min(start + _RANKED, len(rows) - 1))
                _, likely, after = model.log_distribution(window, state, positions)
                targets = torch.tensor(rows)[[place + 1 for place in positions]]
                own = likely.gather(1, targets.unsqueeze(1))
                ranked += ((likely > own).sum(1) + 1).tolist()
            state = after
            found.append(ranked)
        return found


def next_token(
    model: DynamicTextModel,
    state: ReadingState,
    rows: Sequence[int],
    loans: Sequence[Loan] = (),
) -> tuple[Float[Tensor, " vocabulary"], ReadingState]:
    """The next token's log-probabilities once `rows` of a sentence are read, and the state then.

    In that state the entities are still as they were before the sentence.
    """
    window = model.plan([[rows]], [False], loans=[[loans]])
    _, distribution, after = model.log_distribution(window, state, [len(rows) - 1])
    return distribution[0], after


def _steps(
    texts: Sequence[Sequence[Sequence[int]]], dynamic: Trace, static: Trace
) -> list[list[Step]]:
    """One step for each sentence of each text."""
    found: list[list[Step]] = []
    firsts = np.cumsum([0, *map(len, texts)])
    values = (dynamic.scores, static.scores, dynamic.entropies, static.entropies)
    for text, first, *columns in zip(texts, firsts, *values, strict=False):
        own = slice(first, first + len(text))
        cuts = np.cumsum([len(sentence) - 1 for sentence in text])[:-1]
        parts = (np.split(column, cuts) if len(text) else [] for column in columns)
        steps = zip(*parts, dynamic.begins[own], dynamic.ends[own], text, strict=True)
        found.append([Step(*step) for step in steps])
    return found
