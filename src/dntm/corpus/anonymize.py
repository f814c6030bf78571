"""Anonymization: mentions become entity numbers (Section 4).

All texts take the same steps:

    chains -> no overlap -> names and unknown words -> parts -> numbers by first appearance

Of nested mentions the innermost (or outermost) is kept; the words of the others stay in the text.

With `entities_from="repeated"`, a name or unknown word in plain text is an entity only if it
occurs again. A name is then a maximal run of capitalized words, and equal strings are one entity.
The first word of a sentence counts only if the document also writes it with a capital inside a
sentence and never in lower case. Headlines, in which all words but the smallest are capitalized,
are skipped. An unknown word is an entity if it occurs at least twice.

Departure: the paper does not say which of two nested mentions it keeps.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from dntm.corpus.document import Document, Mention, Span
from dntm.corpus.entities import EntityFinder, Lexicon, is_capitalized
from dntm.corpus.vocabulary import From
from dntm.settings import settle

Nesting = Literal["innermost", "outermost"]


@dataclass(frozen=True, kw_only=True)
class AnonymizeConfig:
    """How mentions become entities."""

    nested: Nesting = "innermost"
    """Which of two nested mentions becomes an entity token."""
    named_entities: bool = False
    """Also use named entities outside chains as entities; identical strings are one entity."""
    keep_single: bool = False
    """Keep chains with a single mention."""
    entities_from: From = "first"
    """Names and unknown words are entities from their first mention on (first), or only if they
    occur again later (repeated, as in studies)."""
    lower_case: bool = False
    """Convert all words to lower case; the original words of mentions are stored separately."""

    def __post_init__(self) -> None:
        settle(self)


def find_entities(
    document: Document, kinds: Collection[str], lexicon: Lexicon, config: AnonymizeConfig
) -> Document:
    """The document with the mentions of its entities; the vocabulary is known."""
    marked = mark_chains(document, kinds, config)
    return mark_words(marked, kinds, lexicon, config.entities_from)


def mark_chains(document: Document, kinds: Collection[str], config: AnonymizeConfig) -> Document:
    """The mentions that do not depend on the vocabulary: chains, and names that are repeated."""
    chains = [*document.chains]
    if "names" in kinds and config.entities_from == "repeated":
        chains += find_names(document)
    kept = [chain for chain in chains if config.keep_single or len(set(chain)) > 1]
    if config.named_entities:
        kept += _named_outside(document, chains)
    mentions = _without_overlap(kept, config.nested)
    return replace(
        document,
        name=f"{document.name}:{document.part}" if document.part else document.name,
        part="",
        mentions=[mentions.get(s, []) for s in range(len(document.sentences))],
    )


def mark_words(marked: Document, kinds: Collection[str], lexicon: Lexicon, since: From) -> Document:
    """Add the mentions that depend on the vocabulary: names and unknown words."""
    if not {"names", "unknown"}.intersection(kinds):
        return marked
    first = 1 + max((m.entity or 0 for spans in marked.mentions for m in spans), default=-1)
    if since == "first":
        find = EntityFinder(lexicon, kinds, first).read
    elif "unknown" in kinds:
        unknown = (w for w in marked.words() if w[0].isalpha() and w not in lexicon)
        counts = Counter(map(lexicon.spelled, unknown))
        twice = (word for word, count in counts.items() if count > 1)
        repeated = {word: number for number, word in enumerate(twice)}

        def find(words: Sequence[str], taken: Collection[int] = ()) -> list[Span]:
            return [
                Span(w, w + 1, first + repeated[spelled])
                for w, spelled in enumerate(map(lexicon.spelled, words))
                if spelled in repeated and w not in taken
            ]
    else:
        return marked
    mentions = []
    for words, spans in zip(marked.sentences, marked.mentions, strict=True):
        taken = {w for span in spans for w in range(span.start, span.end)}
        mentions.append(sorted([*spans, *find(words, taken)]))
    return replace(marked, mentions=mentions)


def _named_outside(document: Document, chains: Iterable[Sequence[Mention]]) -> list[list[Mention]]:
    taken = covered(chains)
    by_string: dict[tuple[str, ...], list[Mention]] = {}
    for name in document.named_entities:
        if taken.get(name.sentence, set()).isdisjoint(range(name.start, name.end)):
            words = tuple(document.sentences[name.sentence][name.start : name.end])
            by_string.setdefault(words, []).append(name)
    return list(by_string.values())


def _without_overlap(chains: Iterable[Sequence[Mention]], nested: Nesting) -> dict[int, list[Span]]:
    """The mentions kept in each sentence, left to right; an entity is the index of its chain."""
    sign = 1 if nested == "innermost" else -1
    ranked = sorted(
        ((mention, index) for index, chain in enumerate(chains) for mention in chain),
        key=lambda item: (sign * (item[0].end - item[0].start), item[0].start, item[1]),
    )
    kept: dict[int, list[Span]] = {}
    for (sentence, start, end), index in ranked:
        spans = kept.setdefault(sentence, [])
        place = bisect_right(spans, start, key=lambda span: span.start)
        free = place == 0 or spans[place - 1].end <= start
        if free and (place == len(spans) or spans[place].start >= end):
            spans.insert(place, Span(start, end, index))
    return kept


_NEVER_NAMES = frozenset({"I"})
_SMALL_IN_HEADLINES = frozenset("a an and as at but by for from in of on or the to with s".split())


def covered(chains: Iterable[Sequence[Mention]]) -> dict[int, set[int]]:
    """The words of each sentence that are in a mention."""
    found: dict[int, set[int]] = {}
    for sentence, start, end in (mention for chain in chains for mention in chain):
        found.setdefault(sentence, set()).update(range(start, end))
    return found


def find_names(document: Document) -> list[list[Mention]]:
    """Chains of names outside the document's own mentions, with hindsight."""
    taken = covered(document.chains)
    readable = [s for s, words in enumerate(document.sentences) if not _is_headline(words)]
    inside: set[str] = set()
    lower: set[str] = set()
    for s in readable:
        words = document.sentences[s]
        lower.update(word for word in words if word[0].islower())
        inside.update(
            word for word in words[_start(words) + 1 :] if is_capitalized(word, _NEVER_NAMES)
        )

    chains: dict[tuple[str, ...], list[Mention]] = {}
    for s in readable:
        words = document.sentences[s]
        start = _start(words)
        named = [
            is_capitalized(word, _NEVER_NAMES)
            and w not in taken.get(s, ())
            and (w != start or (word in inside and word.lower() not in lower))
            for w, word in enumerate(words)
        ]
        for is_name, run in groupby(range(len(words)), named.__getitem__):
            if is_name:
                span = list(run)
                key = tuple(words[span[0] : span[-1] + 1])
                chains.setdefault(key, []).append(Mention(s, span[0], span[-1] + 1))
    return list(chains.values())


def _start(words: Sequence[str]) -> int:
    """The first word that is not a quote, bracket or dash."""
    return next((w for w, word in enumerate(words) if word[0].isalnum()), 0)


def _is_headline(words: Iterable[str]) -> bool:
    letters = [word for word in words if word[0].isalpha()]
    return len(letters) > 3 and all(
        word[0].isupper() or word in _SMALL_IN_HEADLINES for word in letters
    )
