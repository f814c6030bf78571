"""Gaps and swaps: another word or another entity in a place of a text (Section 5, the cloze test).

A candidate for a gap stands by the likelihood of the whole sentence with it in the gap, as in the
paper's cloze test, and not only by its own.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from dntm.corpus.document import Token
from dntm.corpus.vocabulary import BOS, EOS, SPECIALS
from dntm.reader.answers import Filling, Swap
from dntm.reader.assembly import reading_of
from dntm.reader.engine import Engine
from dntm.reader.position import ReadingPosition
from dntm.reader.predicting import entity_of, label, next_token
from dntm.reader.prepared import GAP, PreparedText, Word, tokens_of
from dntm.reader.streaming import Streaming
from dntm.reader.units import NATS, Unit

Choose = Literal["both", "words", "entities"]
_AT_ONCE = 64
"""Sentences scored side by side."""


def fill_gap(
    engine: Engine,
    position: ReadingPosition,
    sentence: str,
    *,
    choose: Choose,
    candidates: int,
    unit: Unit,
) -> list[Filling]:
    """Words and entities in the gap of a sentence, the likeliest sentence first.

    Tried are every entity seen so far, and the `candidates` words likeliest at the gap (0: all).
    """
    if choose not in get_args(Choose):
        raise ValueError(f"choose {choose!r}, expected one of {', '.join(get_args(Choose))}")
    if candidates < 0:
        raise ValueError(f"candidates is {candidates}, expected 0 (all words) or more")
    tokens = tokens_of(sentence, position.names, position.surfaces, engine.lexicon)
    gap = _gap_of(tokens)
    before = [BOS, *map(engine.lexicon.row, tokens[:gap])]
    rest = [*map(engine.lexicon.row, tokens[gap + 1 :]), EOS]
    tried = _tried(engine, position, before, choose, candidates)
    nats: list[tuple[float, float]] = []
    for start in range(0, len(tried), _AT_ONCE):
        filled = [[*before, row, *rest] for row in tried[start : start + _AT_ONCE]]
        nats += engine.sentence_nats(filled, (position.dynamic, position.static))
    vocabulary = engine.models.vocabulary
    fillings = [
        Filling(
            word=label(row, position, vocabulary),
            entity=entity_of(row, vocabulary),
            surprisal=dynamic / NATS[unit],
            static_surprisal=static / NATS[unit],
        )
        for row, (dynamic, static) in zip(tried, nats, strict=True)
    ]
    return sorted(fillings, key=lambda filling: filling.surprisal)


def _tried(
    engine: Engine,
    position: ReadingPosition,
    before: Sequence[int],
    choose: Choose,
    words: int,
) -> list[int]:
    vocabulary = engine.models.vocabulary
    entities = [vocabulary.entity_row(entity) for entity in sorted(position.occurrences)]
    if choose == "entities":
        return entities
    first = len(SPECIALS) + vocabulary.entities
    likely, _ = next_token(engine.models.dynamic, position.dynamic, before)
    count = min(words, len(vocabulary.words)) or len(vocabulary.words)
    chosen = [first + place for place in likely[first:].topk(count).indices.tolist()]
    return chosen if choose == "words" else entities + chosen


def _gap_of(tokens: Sequence[Token]) -> int:
    if (found := tokens.count(GAP)) != 1:
        raise ValueError(f"the sentence has {found} gaps, expected one: {GAP}")
    return tokens.index(GAP)


def swap_mention(
    streaming: Streaming, text: PreparedText, mention: tuple[int, int], entity: int, unit: Unit
) -> Swap:
    """Read a text as it is, and with a mention, (sentence, token) from 0, given to an entity."""
    other = _swapped(text, mention, entity)
    before = list(streaming.read(text, unit))
    after = list(streaming.read(other, unit, before))
    return Swap(
        sentence=mention[0],
        position=mention[1],
        before=reading_of(text, before, unit),
        after=reading_of(other, after, unit),
    )


def _swapped(text: PreparedText, mention: tuple[int, int], entity: int) -> PreparedText:
    """The text after the swap, in which the entities keep their numbers."""
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
