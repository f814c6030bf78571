"""Anonymising: mentions become entity numbers (Section 4).

Each coreference chain gets a number in order of first appearance, and each of its mentions is
replaced by that number, a single token. Where mentions nest, the innermost (or outermost) is kept,
so that no overlap survives; the words of a mention that was not kept stay as they are.

Departure: the paper does not say which of two nested mentions it kept.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from dntm.corpus.document import AnonymizedDocument, Document, Mention, Token

Nesting = Literal["innermost", "outermost"]


@dataclass(frozen=True, kw_only=True)
class AnonymizeConfig:
    """How chains become entities."""

    nested: Nesting = "innermost"
    """Which of two nested mentions becomes an entity token."""
    named_entities: bool = False
    """Give named entities outside every chain an identifier too, the same string the same one."""
    keep_single: bool = False
    """Keep chains with a single mention in the whole document."""
    lower_case: bool = False
    """Write all words in lower case."""


def anonymize(document: Document, config: AnonymizeConfig) -> AnonymizedDocument:
    """Replace every kept mention by its entity's number."""
    chains = [chain for chain in document.chains if config.keep_single or len(set(chain)) > 1]
    if config.named_entities:
        chains += _named_outside_chains(document)
    kept = _without_overlap(chains, config.nested)
    sentences: list[list[Pair]] = []
    for s, words in enumerate(document.sentences):
        pairs: list[Pair] = []
        position = 0
        written = [word.lower() for word in words] if config.lower_case else words
        for mention, chain in kept.get(s, ()):
            pairs += [(word, None) for word in written[position : mention.start]]
            pairs.append((chain, words[mention.start : mention.end]))
            position = mention.end
        pairs += [(word, None) for word in written[position:]]
        sentences.append(pairs)
    name = f"{document.name}:{document.part}" if document.part else document.name
    return numbered(name, sentences)


Pair = tuple[Token, Sequence[str] | None]
"""A word with None, or any mark of an entity with the words of this mention."""


def numbered(name: str, sentences: Iterable[Iterable[Pair]]) -> AnonymizedDocument:
    """Number the entities by first appearance, whatever they were marked with."""
    numbers: dict[Token, int] = {}
    surfaces: list[Sequence[str]] = []
    tokens: list[list[Token]] = []
    for sentence in sentences:
        tokens.append([])
        for token, words in sentence:
            if words is None:
                tokens[-1].append(token)
            else:
                tokens[-1].append(numbers.setdefault(token, len(numbers) + 1))
                surfaces.append(words)
    return AnonymizedDocument(name=name, sentences=tokens, surfaces=surfaces)


def pairs_of(document: AnonymizedDocument) -> list[list[Pair]]:
    """Each token with the words of its mention, or with None: what `numbered` takes."""
    surfaces = iter(document.surfaces)
    return [
        [(token, next(surfaces) if isinstance(token, int) else None) for token in sentence]
        for sentence in document.sentences
    ]


def _named_outside_chains(document: Document) -> list[list[Mention]]:
    taken = {word for chain in document.chains for mention in chain for word in _words(mention)}
    by_string: dict[tuple[str, ...], list[Mention]] = {}
    for name in document.named_entities:
        if taken.isdisjoint(_words(name)):
            words = tuple(document.sentences[name.sentence][name.start : name.end])
            by_string.setdefault(words, []).append(name)
    return list(by_string.values())


def _without_overlap(
    chains: Sequence[Sequence[Mention]], nested: Nesting
) -> dict[int, list[tuple[Mention, int]]]:
    """The mentions kept in each sentence, left to right, with the index of their chain."""
    sign = 1 if nested == "innermost" else -1
    ranked = sorted(
        ((mention, index) for index, chain in enumerate(chains) for mention in chain),
        key=lambda item: (sign * (item[0].end - item[0].start), item[0].start, item[1]),
    )
    kept: dict[int, list[tuple[Mention, int]]] = {}
    taken: set[tuple[int, int]] = set()
    for mention, index in ranked:
        if taken.isdisjoint(words := _words(mention)):
            kept.setdefault(mention.sentence, []).append((mention, index))
            taken.update(words)
    return {sentence: sorted(mentions) for sentence, mentions in kept.items()}


def _words(mention: Mention) -> list[tuple[int, int]]:
    """Sentence and position of each of its words."""
    return [(mention.sentence, word) for word in range(mention.start, mention.end)]


def cut(document: AnonymizedDocument, longest: int | None) -> Iterator[AnonymizedDocument]:
    """Cut into near-equal parts of at most `longest` sentences, entities numbered anew in each.

    With n sentences there are k = ceil(n / longest) parts, part i from round(i n / k).
    """
    count = len(document.sentences)
    parts = 1 if longest is None else -(-count // longest)
    if parts <= 1:
        yield document
        return
    pairs = pairs_of(document)
    bounds = [round(i * count / parts) for i in range(parts + 1)]
    for number, (start, end) in enumerate(pairwise(bounds), start=1):
        yield numbered(f"{document.name}/{number}", pairs[start:end])


def without_single(document: AnonymizedDocument, *, lower_case: bool) -> AnonymizedDocument:
    """Give entities with a single mention their words back."""
    occurrences: Counter[Token] = Counter(
        t for s in document.sentences for t in s if isinstance(t, int)
    )

    def restored(token: Token, words: Sequence[str] | None) -> list[Pair]:
        if words is None or occurrences[token] > 1:
            return [(token, words)]
        return [(word.lower() if lower_case else word, None) for word in words]

    return numbered(
        document.name,
        ([r for pair in sentence for r in restored(*pair)] for sentence in pairs_of(document)),
    )
