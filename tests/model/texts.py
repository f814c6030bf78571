"""Texts for small models, as rows."""

from collections.abc import Sequence

BOS, EOS, A, B, C = 1, 2, 3, 4, 5
"""Rows of the small vocabulary; A, B and C are entities, 6 to 11 are words."""
Document = Sequence[Sequence[int]]

# Several mentions of an entity in one sentence, an entity that returns after many sentences,
# sentences without entities, unknown words, documents of one and of no sentence.
LONG: Document = [
    [BOS, 7, A, 8, 9, A, B, EOS],
    [BOS, 9, 10, EOS],
    [BOS, B, 7, EOS],
    [BOS, A, 8, B, 8, A, A, 9, EOS],
    [BOS, 11, C, EOS],
    [BOS, C, EOS],
    [BOS, 6, 6, 7, A, 9, 10, C, EOS],
]
DOCUMENTS: list[Document] = [
    [[BOS, A, 7, EOS], [BOS, 8, A, 9, EOS], [BOS, A, A, EOS]],
    LONG,
    [[BOS, 0, A, 0, 10, 0, EOS]],
    [],
    [[BOS, 7, 8, EOS], [BOS, 9, B, A, EOS], [BOS, B, EOS], [BOS, 6, A, B, 10, 11, EOS]],
    [[BOS, A, 7, EOS], *[[BOS, 8, EOS]] * 10, [BOS, B, *[A] * 9, 7, B, EOS]],
]
