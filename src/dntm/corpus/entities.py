"""Entities in text that nobody annotated: names, and unknown words.

`names`: maximal runs of capitalised words; the same string is the same entity. The first word of
a sentence is capitalised anyway, so there it counts only when the document also writes it with a
capital inside a sentence and never without one. A headline, all of whose words but the smallest
(of, the, ...) are capitalised, says nothing and is passed over.

`unknown`: words outside the vocabulary; the same word is the same entity. The vocabulary is known
only after all documents are read, so this works on documents that are anonymised already.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

from dntm.corpus.anonymize import numbered, pairs_of
from dntm.corpus.document import AnonymizedDocument, Document, Mention, Token
from dntm.corpus.vocabulary import Vocabulary

_NEVER_NAMES = frozenset({"I"})
_SMALL_IN_HEADLINES = frozenset("a an and as at but by for from in of on or the to with s".split())


def find_names(document: Document, ordinary: Vocabulary | None = None) -> list[list[Mention]]:
    """Chains of names that lie outside the document's own mentions.

    Where a vocabulary of `ordinary` words is given, a name may also stand nowhere but at the
    beginning of sentences, as long as it is none of them in small letters.
    """
    taken = {
        (mention.sentence, word)
        for chain in document.chains
        for mention in chain
        for word in range(mention.start, mention.end)
    }
    readable = [s for s, words in enumerate(document.sentences) if not _is_headline(words)]
    inside: set[str] = set()
    lower: set[str] = set()
    for s in readable:
        words = document.sentences[s]
        lower.update(word for word in words if word[0].islower())
        inside.update(word for word in words[_start(words) + 1 :] if _is_capitalised(word))

    def is_no(word: str) -> bool:
        """Whether a word is known to be none of the ordinary ones."""
        return ordinary is not None and word.lower() not in ordinary

    chains: dict[tuple[str, ...], list[Mention]] = {}
    for s in readable:
        words = document.sentences[s]
        start = _start(words)
        named = [
            _is_capitalised(word)
            and (s, w) not in taken
            and (w != start or ((word in inside or is_no(word)) and word.lower() not in lower))
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


def _is_capitalised(word: str) -> bool:
    return word[0].isupper() and word not in _NEVER_NAMES


def _is_headline(words: Iterable[str]) -> bool:
    letters = [word for word in words if word[0].isalpha()]
    return len(letters) > 3 and all(
        word[0].isupper() or word in _SMALL_IN_HEADLINES for word in letters
    )


def with_unknown_words(
    document: AnonymizedDocument, vocabulary: Vocabulary, *, at_least: int = 2
) -> AnonymizedDocument:
    """Make every unknown word that occurs often enough an entity too, and number all anew."""
    counts: dict[Token, int] = {}
    for word in (t for sentence in document.sentences for t in sentence if isinstance(t, str)):
        if word not in vocabulary and word[0].isalpha():
            counts[word] = counts.get(word, 0) + 1
    return numbered(
        document.name,
        (
            [
                (
                    token,
                    [str(token)] if words is None and counts.get(token, 0) >= at_least else words,
                )
                for token, words in sentence
            ]
            for sentence in pairs_of(document)
        ),
    )
