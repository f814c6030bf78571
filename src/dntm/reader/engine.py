"""Engine: texts through both models, sentence by sentence.

Whole texts are read side by side, a stretch of sentences at a time; a stream reads one sentence at
a time. Either way there is one step for each sentence.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from dntm.model.reading_state import ReadingState
from dntm.reader.lexicon import Lexicon
from dntm.reader.pair import ModelPair
from dntm.reader.prepared import PreparedText, Word

STRETCH = 20
"""Sentences of a text read at once."""
LogProbabilities = Float[np.ndarray, " predicted"]


@dataclass(frozen=True, slots=True)
class Step:
    """What both models say of one sentence."""

    dynamic: LogProbabilities
    static: LogProbabilities
    """In nats."""
    before: Float[Tensor, "entities context_dim"]
    after: Float[Tensor, "entities context_dim"]
    """d_e of every entity."""


States = tuple[ReadingState, ReadingState]


class Engine:
    """Both models, read together."""

    def __init__(self, models: ModelPair) -> None:
        self.models = models
        self.lexicon = Lexicon.of(models.vocabulary)

    def rows(self, sentence: Sequence[Word]) -> list[int]:
        """The rows of a sentence, <bos> and <eos> around it."""
        return self.lexicon.rows(word.token for word in sentence)

    def initial(self, texts: int = 1) -> States:
        """Both models' states before the first sentence."""
        return self.models.dynamic.initial_state(texts), self.models.static.initial_state(texts)

    def advance(
        self,
        texts: Sequence[Sequence[Sequence[int]]],
        states: States,
        pool: Executor | None = None,
    ) -> tuple[list[list[Step]], States]:
        """Read some sentences (rows) of each text: a step for each, and the states after them.

        In a `pool` the static model reads while the dynamic one does.
        """
        dynamic, static = self.models.dynamic, self.models.static
        beside = pool and pool.submit(static.score, static.plan(texts), states[1])
        scores, begins, after = dynamic.trace(dynamic.plan(texts), states[0])
        static_scores, static_after = (
            beside.result() if beside else static.score(static.plan(texts), states[1])
        )
        width = begins.shape[2]
        found: list[list[Step]] = []
        firsts = np.cumsum([0, *map(len, texts)])
        for text, first, *both, last in zip(
            texts, firsts, scores, static_scores, after.memory, strict=False
        ):
            memory = [*begins[first : first + len(text)], last[:, :width]]
            cuts = np.cumsum([len(sentence) - 1 for sentence in text])[:-1]
            parts = (np.split(values, cuts) if len(text) else [] for values in both)
            steps = zip(*parts, memory[:-1], memory[1:], strict=True)
            found.append([Step(*step) for step in steps])
        return found, (after, static_after)

    def read(self, texts: Sequence[PreparedText]) -> Iterator[list[list[Step]]]:
        """Read whole texts side by side; each stretch gives some more steps of every text."""
        rows = [[self.rows(sentence) for sentence in text.sentences] for text in texts]
        states = self.initial(len(texts))
        with ThreadPoolExecutor(1) as pool:
            for start in range(0, max(map(len, rows), default=0), STRETCH):
                part = [text[start : start + STRETCH] for text in rows]
                steps, states = self.advance(part, states, pool)
                yield steps

    def sentence_nats(
        self, sentences: Sequence[Sequence[int]], states: States
    ) -> list[tuple[float, float]]:
        """The surprisal of each of these sentences (rows) if it came next, under both models."""
        found = []
        for model, state in zip((self.models.dynamic, self.models.static), states, strict=True):
            stretch = model.plan([[rows] for rows in sentences], [False] * len(sentences))
            scores, _ = model.score(stretch, state.select([0] * len(sentences)))
            found.append([float(-values.sum()) for values in scores])
        return list(zip(*found, strict=True))
