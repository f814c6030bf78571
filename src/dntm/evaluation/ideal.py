"""The ideal reader as a scorer: for texts whose distribution is known exactly (storyworld)."""

from collections.abc import Iterable, Iterator

import numpy as np

from dntm.corpus.dataset import Dataset
from dntm.corpus.document import AnonymizedDocument
from dntm.evaluation.columns import Floats
from dntm.evaluation.records import Records


class IdealReader:
    """Gives the log-probabilities that the dataset itself carries."""

    def score_all(self, documents: Iterable[AnonymizedDocument]) -> Iterator[Floats]:
        """The ideal log-probability of every predicted token."""
        for document in documents:
            if document.ideal is None:
                raise ValueError(f"document {document.name!r} has no ideal reader: not storyworld")
            yield np.array([value for sentence in document.ideal for value in sentence])


def ideal_records(dataset: Dataset, split: str) -> Records | None:
    """What the ideal reader says of a split; None where the dataset knows no such reader."""
    first = next(dataset.documents(split), None)
    if first is None or first.ideal is None:
        return None
    scored = IdealReader().score_all(dataset.documents(split))
    return Records.of(dataset.documents(split), scored)
