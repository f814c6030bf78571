"""JSON lines, one document a line, as coreference systems exchange them.

Two ways of writing chains are known:

    "clusters":          [[[3, 4], ...], ...]         offsets over the whole document, ends included
    "mention_clusters":  [[[0, 3, 5], ...], ...]      sentence, start, end excluded (PreCo)

beside "sentences": [["Mary", ...], ...] and a name under "doc_key", "doc_id" or "id". Sentences
without words are left out: PreCo parts paragraphs with a sentence of one space.
"""

import json
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, compress
from pathlib import Path
from typing import Any

from dntm.corpus.document import Document, Mention, are_sentences, check
from dntm.corpus.source import Block, numbered_lines

_NAMES = ("doc_key", "doc_id", "id", "name")


def blocks(path: Path) -> Iterator[Block]:
    """One block a line that is not empty."""
    for number, line in numbered_lines(path):
        if line.strip():
            yield Block(str(path), number, [line])


def parse(block: Block) -> Document:
    """Read one document."""
    number, line = next(block.text_lines())
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise block.error(number, f"not JSON ({error}), expected an object") from None
    try:
        return _document(fields, fallback=f"{block.label or Path(block.path).name}:{number}")
    except ValueError as error:
        raise block.error(number, str(error)) from None


def _document(fields: Any, fallback: str) -> Document:
    if not isinstance(fields, dict) or not are_sentences(fields.get("sentences"), (str,)):
        raise ValueError('expected an object with "sentences", a list of lists of words')
    sentences: list[list[str]] = fields["sentences"]
    if "mention_clusters" in fields:
        chains = _chains(fields["mention_clusters"], "mention_clusters", 3)
        mentions = [[Mention(*span) for span in chain] for chain in chains]
    elif "clusters" in fields:
        chains = _chains(fields["clusters"], "clusters", 2)
        starts = list(accumulate((len(sentence) for sentence in sentences), initial=0))
        mentions = [[_in_sentence(span, starts) for span in chain] for chain in chains]
    else:
        raise ValueError('no chains, expected "clusters" or "mention_clusters"')
    name = str(next((fields[key] for key in _NAMES if fields.get(key) is not None), fallback))
    check(Document(name=name, sentences=sentences, chains=mentions))
    kept, chains_kept = _without_empty_sentences(sentences, mentions)
    return Document(name=name, sentences=kept, chains=chains_kept)


def _chains(value: Any, key: str, width: int) -> list[list[list[int]]]:
    if not isinstance(value, list) or not all(isinstance(chain, list) for chain in value):
        raise ValueError(f'"{key}" must be a list of lists of mentions')
    for span in (span for chain in value for span in chain):
        if not (
            isinstance(span, list)
            and len(span) == width
            and all(type(number) is int for number in span)
        ):
            raise ValueError(f"mention {span!r} in {key!r}, expected {width} whole numbers")
    return value


def _in_sentence(span: list[int], starts: list[int]) -> Mention:
    first, last = span
    if not 0 <= first <= last < starts[-1]:
        raise ValueError(f"mention {span!r}, expected offsets from 0 to {starts[-1] - 1}")
    sentence = bisect_right(starts, first) - 1
    return Mention(sentence, first - starts[sentence], last + 1 - starts[sentence])


def _without_empty_sentences(
    sentences: list[list[str]], chains: list[list[Mention]]
) -> tuple[list[list[str]], list[list[Mention]]]:
    has_words = [any(word.strip() for word in sentence) for sentence in sentences]
    renumbered = list(accumulate(has_words, initial=0))
    moved = [
        sorted(mention._replace(sentence=renumbered[mention.sentence]) for mention in chain)
        for chain in chains
        if chain
    ]
    return list(compress(sentences, has_words)), moved
