"""Predicting: the next token, as the dynamic and the static model see it (Eq. 1)."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from dntm.corpus.vocabulary import SPECIALS, Vocabulary
from dntm.model.language_model import DynamicTextModel
from dntm.model.reading_state import ReadingState
from dntm.reader.answers import Candidate, Predictions
from dntm.reader.pair import ModelPair
from dntm.reader.position import ReadingPosition


def next_token(
    model: DynamicTextModel, state: ReadingState, rows: Sequence[int]
) -> tuple[Float[Tensor, " vocabulary"], ReadingState]:
    """The next token's log-probabilities once `rows` of a sentence are read, and the state then.

    In that state the entities are still as they were before the sentence.
    """
    stretch = model.plan([[rows]], [False])
    _, distribution, after = model.log_distribution(stretch, state, [len(rows) - 1])
    return distribution[0], after


def entity_of(row: int, vocabulary: Vocabulary) -> int:
    """The entity whose row this is, else 0."""
    entity = row - len(SPECIALS) + 1
    return entity if 1 <= entity <= vocabulary.entities else 0


def label(row: int, position: ReadingPosition, vocabulary: Vocabulary) -> str:
    """The word of a row; an entity's name once it has been seen."""
    if (entity := entity_of(row, vocabulary)) in position.occurrences:
        return position.names[entity]
    first = len(SPECIALS) + vocabulary.entities
    if row >= first:
        return vocabulary.words[row - first]
    return f"[{entity}]" if entity else SPECIALS[row]


def predict(
    models: ModelPair, position: ReadingPosition, rows: Sequence[int], k: int
) -> Predictions:
    """The k likeliest tokens of each model, with the probabilities of both."""
    if k < 1:
        raise ValueError(f"k is {k}, expected at least 1")
    vocabulary = models.vocabulary
    dynamic, _ = next_token(models.dynamic, position.dynamic, rows)
    static, _ = next_token(models.static, position.static, rows)

    def likeliest(by: Tensor) -> list[Candidate]:
        return [
            Candidate(
                word=label(row, position, vocabulary),
                entity=entity_of(row, vocabulary),
                probability=float(dynamic[row].exp()),
                static_probability=float(static[row].exp()),
            )
            for row in by.topk(min(k, len(vocabulary))).indices.tolist()
        ]

    return Predictions(dynamic=likeliest(dynamic), static=likeliest(static))
