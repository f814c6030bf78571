"""Gaps and swaps: another word or another entity in a place of a text (Section 5, the cloze test).

A candidate for a gap stands by the likelihood of the whole sentence with it in the gap, as in the
paper's cloze test, and not only by its own.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from dntm.corpus.document import Token
from dntm.corpus.vocabulary import BOS, EOS, SPECIALS
from dntm.reader.answers import Filling
from dntm.reader.engine import Engine
from dntm.reader.position import ReadingPosition
from dntm.reader.predicting import entity_of, label, next_token
from dntm.reader.prepared import GAP, PreparedText, Word
from dntm.reader.reading import Unit

Choose = Literal["both", "words", "entities"]
_AT_ONCE = 64
"""Sentences scored side by side."""


def fill_gap(
    engine: Engine,
    position: ReadingPosition,
    tokens: Sequence[Token],
    candidates: Sequence[int],
    unit: Unit,
) -> list[Filling]:
    """The candidate rows in the gap of a sentence, the likeliest sentence first."""
    vocabulary = engine.models.vocabulary
    gap = gap_of(tokens)
    before = [BOS, *(vocabulary.row(token) for token in tokens[:gap])]
    rest = [*(vocabulary.row(token) for token in tokens[gap + 1 :]), EOS]
    nats: list[tuple[float, float]] = []
    for start in range(0, len(candidates), _AT_ONCE):
        filled = [[*before, row, *rest] for row in candidates[start : start + _AT_ONCE]]
        nats += engine.sentence_nats(filled, (position.dynamic, position.static))
    scale = 1.0 if unit == "nats" else 1 / math.log(2)
    fillings = [
        Filling(
            word=label(row, position, vocabulary),
            entity=entity_of(row, vocabulary),
            surprisal=dynamic * scale,
            static_surprisal=static * scale,
        )
        for row, (dynamic, static) in zip(candidates, nats, strict=True)
    ]
    return sorted(fillings, key=lambda filling: filling.surprisal)


def gap_candidates(
    engine: Engine,
    position: ReadingPosition,
    tokens: Sequence[Token],
    choose: Choose,
    words: int,
) -> list[int]:
    """The rows to try: every entity seen so far, and the words likeliest at the gap (0: all)."""
    vocabulary = engine.models.vocabulary
    entities = [vocabulary.entity_row(entity) for entity in sorted(position.occurrences)]
    if choose == "entities":
        return entities
    first = len(SPECIALS) + vocabulary.entities
    before = [BOS, *(vocabulary.row(token) for token in tokens[: gap_of(tokens)])]
    likely, _ = next_token(engine.models.dynamic, position.dynamic, before)
    count = min(words, len(vocabulary.words)) or len(vocabulary.words)
    chosen = [first + place for place in likely[first:].topk(count).indices.tolist()]
    return chosen if choose == "words" else entities + chosen


def gap_of(tokens: Sequence[Token]) -> int:
    """Where the sentence has its gap."""
    if (found := tokens.count(GAP)) != 1:
        raise ValueError(f"the sentence has {found} gaps, expected one: {GAP}")
    return tokens.index(GAP)


def swapped(text: PreparedText, mention: tuple[int, int], entity: int) -> PreparedText:
    """The text with a mention, (sentence, token) from 0, given to another of its entities.

    The entities keep their numbers.
    """
    names = text.names()
    if entity not in names:
        raise ValueError(f"entity {entity}, expected one of the text's: {sorted(names)}")
    sentences = [list(sentence) for sentence in text.sentences]
    s, t = mention
    if not (0 <= s < len(sentences) and 0 <= t < len(sentences[s])):
        raise ValueError(f"there is no token {t} in sentence {s} of the text (both from 0)")
    if isinstance(sentences[s][t].token, str):
        raise ValueError(
            f"{sentences[s][t].shown!r} (sentence {s}, token {t}) is no mention of an entity"
        )
    sentences[s][t] = Word(entity, (names[entity],))
    return replace(text, sentences=sentences)
