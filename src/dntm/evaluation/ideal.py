"""The ideal reader as a scorer: for texts whose distribution is known exactly (storyworld)."""

from collections.abc import Iterable, Iterator

import numpy as np

from dntm.corpus.document import AnonymizedDocument
from dntm.evaluation.records import Floats


class IdealReader:
    """Gives the log-probabilities that the dataset itself carries."""

    def score_all(self, documents: Iterable[AnonymizedDocument]) -> Iterator[Floats]:
        """The ideal log-probability of every predicted token."""
        for document in documents:
            if document.ideal is None:
                raise ValueError(f"document {document.name!r} has no ideal reader: not storyworld")
            yield np.array([value for sentence in document.ideal for value in sentence])
