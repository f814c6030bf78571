"""Preparing: from a text to the tokens a model reads, the text's own words kept beside them.

What counts as an entity is chosen as for a dataset (`dntm data build --entities`): annotated
chains, names, unknown words, inline markup, a coreference model, or several of these. A model has
rows for so many entities and no more: of a text with more, the least frequent stay words.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from dntm.corpus.anonymize import AnonymizeConfig, anonymize
from dntm.corpus.document import AnonymizedDocument, Document, Mention, Token, check
from dntm.corpus.entities import find_names, with_unknown_words
from dntm.corpus.resolver import Resolver, resolve
from dntm.corpus.text import document_of
from dntm.reader.lexicon import Lexicon
from dntm.reader.prepared import PreparedText, Word, Words, mentions_in

Text = str | Document | AnonymizedDocument | PreparedText
Kind = Literal["chains", "names", "unknown", "inline", "resolver"]
Kinds = Kind | Sequence[Kind] | None
"""What counts as an entity. None: chains where the text has them, else names and unknown words."""


def prepare(
    text: Text,
    lexicon: Lexicon,
    kinds: Kinds = None,
    resolver: Resolver | None = None,
    *,
    border: int = 0,
) -> PreparedText:
    """Find the entities of a text; ValueError where it has no word.

    No mention spans the `border`, before which so many characters stand, white space not counted.
    """
    if isinstance(text, PreparedText):
        if kinds is not None:
            raise ValueError(
                f"the text {text.name!r} is prepared already, expected no entities, not {kinds!r}"
            )
        return text
    if not isinstance(text, (str, Document, AnonymizedDocument)):
        raise TypeError(f"expected a text or a document, not {type(text).__name__} {text!r:.40}")
    chosen = _chosen(text, kinds)
    if isinstance(text, AnonymizedDocument):
        anonymized = text
        if not any(text.sentences):
            raise ValueError(f"document {text.name!r} is empty: expected at least one word")
    else:
        document = text if isinstance(text, Document) else _parsed(text, inline="inline" in chosen)
        check(document)
        chains = _apart(_chains(document, chosen, resolver, lexicon), document.sentences, border)
        config = AnonymizeConfig(keep_single="inline" in chosen)
        anonymized = anonymize(replace(document, chains=chains), config)
    sentences = _words(anonymized, lexicon)
    if "unknown" in chosen:
        sentences = _with_unknown(sentences, lexicon)
    sentences, notes = _within(sentences, lexicon)
    return PreparedText(name=anonymized.name, sentences=sentences, notes=notes)


def _chosen(text: str | Document | AnonymizedDocument, kinds: Kinds) -> tuple[Kind, ...]:
    if kinds is None:
        annotated = not isinstance(text, str) and (
            isinstance(text, AnonymizedDocument) or bool(text.chains)
        )
        return ("chains",) if annotated else ("names", "unknown")
    chosen: tuple[Kind, ...] = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if odd := [kind for kind in chosen if kind not in get_args(Kind)]:
        raise ValueError(f"entities {odd[0]!r}, expected one of {', '.join(get_args(Kind))}")
    if isinstance(text, str) and "chains" in chosen:
        raise ValueError(
            "a plain text has no chains: expected names, unknown, inline or resolver, "
            "or an annotated document"
        )
    if isinstance(text, AnonymizedDocument) and not {"chains", "unknown"}.issuperset(chosen):
        raise ValueError(
            f"document {text.name!r} is anonymised already, expected chains or unknown, "
            f"not {', '.join(chosen)}"
        )
    return chosen


def _parsed(text: str, *, inline: bool) -> Document:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the character {text[error.start]!r} of the text cannot be written as UTF-8"
        ) from None
    if not text.strip():
        raise ValueError("the text is empty, expected at least one word")
    return document_of(text, inline=inline)


def _chains(
    document: Document, kinds: Sequence[Kind], resolver: Resolver | None, lexicon: Lexicon
) -> list[Sequence[Mention]]:
    keeps = {"chains", "inline"}.intersection(kinds)
    chains: list[Sequence[Mention]] = list(document.chains) if keeps else []
    if "resolver" in kinds:
        if resolver is None:
            raise ValueError("entities 'resolver' need a coreference model: none was given")
        chains += resolve(replace(document, chains=()), resolver).chains
    if "names" in kinds:
        names = find_names(replace(document, chains=chains), lexicon.vocabulary)
        chains += [mentions for mentions in names if len(mentions) > 1]
    return chains


def _apart(
    chains: Sequence[Sequence[Mention]], sentences: Sequence[Sequence[str]], border: int
) -> list[Sequence[Mention]]:
    """The chains without the mentions that begin before the border and end behind it."""
    places = ((s, w) for s, sentence in enumerate(sentences) for w in range(len(sentence)))
    read = 0
    for s, w in places:
        if read >= border:
            return [[m for m in c if m.sentence != s or not m.start < w < m.end] for c in chains]
        read += len(sentences[s][w])
        if read > border:
            raise ValueError(f"the border lies in {sentences[s][w]!r}, expected between two words")
    return list(chains)


def _words(document: AnonymizedDocument, lexicon: Lexicon) -> Words:
    mentions = sum(isinstance(t, int) for sentence in document.sentences for t in sentence)
    if document.surfaces and len(document.surfaces) != mentions:
        raise ValueError(
            f"document {document.name!r} has the words of {len(document.surfaces)} mentions, "
            f"expected {mentions}"
        )
    surfaces = iter(document.surfaces)

    def word(token: Token) -> Word:
        if isinstance(token, int):
            return Word(token, tuple(next(surfaces, ())) or (f"[{token}]",))
        return _plain(token, lexicon)

    return [[word(token) for token in sentence] for sentence in document.sentences]


def _plain(word: str, lexicon: Lexicon) -> Word:
    return Word(lexicon.spelled(word), (word,), unknown=word not in lexicon)


def _with_unknown(sentences: Words, lexicon: Lexicon) -> Words:
    document = AnonymizedDocument(
        name="",
        sentences=_without_first_capitals(sentences),
        surfaces=[word.words for word in mentions_in(sentences)],
    )
    found = with_unknown_words(document, lexicon.vocabulary)
    return [
        [
            Word(token, word.words) if isinstance(token, int) else word
            for token, word in zip(tokens, sentence, strict=True)
        ]
        for tokens, sentence in zip(found.sentences, sentences, strict=True)
    ]


def _without_first_capitals(sentences: Words) -> list[list[Token]]:
    """The tokens; what a sentence begins with is small where the text writes it so elsewhere."""
    tokens = [[word.token for word in sentence] for sentence in sentences]
    small = {token for sentence in tokens for token in sentence if isinstance(token, str)}
    for sentence in tokens:
        start = next((w for w, token in enumerate(sentence) if str(token)[0].isalnum()), None)
        if start is not None and isinstance(word := sentence[start], str) and word.lower() in small:
            sentence[start] = word.lower()
    return tokens


def _within(sentences: Words, lexicon: Lexicon) -> tuple[Words, tuple[str, ...]]:
    """Keep the most frequent entities, numbered anew, where some have no row."""
    rows = lexicon.vocabulary.entities
    counts = Counter(int(word.token) for word in mentions_in(sentences))
    if max(counts, default=0) <= rows:
        return sentences, ()
    kept = sorted(counts, key=lambda entity: (-counts[entity], entity))[:rows]
    numbers: dict[Token, int] = {}
    limited: list[list[Word]] = []
    for sentence in sentences:
        limited.append([])
        for word in sentence:
            if isinstance(word.token, str):
                limited[-1].append(word)
            elif word.token in kept:
                number = numbers.setdefault(word.token, len(numbers) + 1)
                limited[-1].append(Word(number, word.words))
            else:
                limited[-1] += [_plain(restored, lexicon) for restored in word.words]
    left = len(counts) - len(kept)
    note = f"{left} of {len(counts)} entities stay words: the model has rows for {rows}"
    return limited, (note,) if left else ()
