"""Table 1: what a split of a dataset looks like (Section 4), and a few more figures."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.vocabulary import Vocabulary


@dataclass
class SplitStatistics:
    """Counts over the documents of one split, and the averages of Table 1."""

    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    entity_tokens: int = 0
    entities: int = 0
    repeated_entities: int = 0
    unknown_tokens: int = 0

    def add(self, document: AnonymizedDocument, vocabulary: Vocabulary) -> None:
        """Count one more document."""
        tokens = [token for sentence in document.sentences for token in sentence]
        occurrences = Counter(token for token in tokens if isinstance(token, int))
        self.documents += 1
        self.sentences += len(document.sentences)
        self.tokens += len(tokens)
        self.entity_tokens += occurrences.total()
        self.entities += len(occurrences)
        self.repeated_entities += sum(count > 1 for count in occurrences.values())
        self.unknown_tokens += sum(
            isinstance(token, str) and token not in vocabulary for token in tokens
        )

    def table_1(self) -> tuple[float, ...]:
        """The rows of Table 1."""
        documents = max(self.documents, 1)
        return (
            self.documents,
            self.sentences / documents,
            self.entities / documents,
            self.repeated_entities / documents,
            self.entity_tokens / max(self.entities, 1),
        )


def count_split(documents: Iterable[AnonymizedDocument], vocabulary: Vocabulary) -> SplitStatistics:
    """Count all documents of a split."""
    statistics = SplitStatistics()
    for document in documents:
        statistics.add(document, vocabulary)
    return statistics
