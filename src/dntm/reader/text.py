"""From a text to the tokens a model reads, the text's own words and places kept beside them.

The way from text to entities is that of datasets (`corpus.text`, `corpus.anonymize`), with the
settings that came with the model. A text has as many entities as it has: rows are lent
(`corpus.rows`).

A sentence given beside a text (a gap to fill, a beginning to go on from) speaks of its entities:
by number, [1], or by words that mention one of them and nothing else.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from dntm.corpus.anonymize import AnonymizeConfig, From, MarkedDocument, find_entities
from dntm.corpus.document import AnonymizedDocument, Document, Span, Token, check
from dntm.corpus.entities import PRONOUNS, Lexicon
from dntm.corpus.resolver import Resolver, resolve
from dntm.corpus.text import WORD_RULES, document_of

Kind = Literal["chains", "names", "unknown", "inline", "resolver", "none"]
Kinds = Kind | Sequence[Kind] | None
"""What counts as an entity. None: chains where the text has them, else names and unknown words."""
GAP = "[]"
"""What stands for a missing word."""
_WORD = re.compile("|".join((r"\[\d{0,6}\]", *WORD_RULES)))

_CLOSING = frozenset({".", ",", ";", ":", "!", "?", "...", "…", ")", "]", "}", "”", "»", "%"})
_OPENING = frozenset({"(", "[", "{", "“", "«", "$", "£", "€", "#"})
_CLITICS = tuple(f"{mark}{end}" for mark in "'’" for end in ("s", "re", "ve", "ll", "d", "m"))
_NOT = ("n't", "n’t")


def as_prose(words: Iterable[str]) -> str:
    """Join words as text has them."""
    written = list(words)
    return "".join(s + word for s, word in zip(spaces_before(written), written, strict=True))


def spaces_before(words: Iterable[str]) -> Iterator[str]:
    """A space or nothing for each word.

    Nothing before a point or a clitic, nor inside quotes and brackets.
    """
    quoted, glued = False, True
    for word in words:
        closes = word in _CLOSING or word.lower() in (*_CLITICS, *_NOT) or (word == '"' and quoted)
        yield "" if closes or glued else " "
        glued = word in _OPENING or (word == '"' and not quoted)
        quoted ^= word == '"'


@dataclass(frozen=True, slots=True)
class Word:
    """A token as the model reads it, and the words of the text it stands for."""

    token: Token
    words: Sequence[str]
    unknown: bool = False
    """Whether the model has no row for it, and takes it for any unknown word."""
    start: int = 0
    end: int = 0
    """Its characters in the text."""

    @property
    def shown(self) -> str:
        """The words as the text has them."""
        return as_prose(self.words)


Words = Sequence[Sequence[Word]]


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedText:
    """A text ready to be read."""

    name: str
    sentences: Words
    text: str = ""
    """As it was written; of a document that is no plain text, its words with blanks between."""
    paragraphs: Sequence[int] = ()
    """The paragraph of each sentence, from 0."""
    notes: Sequence[str] = ()

    def names(self) -> dict[int, str]:
        """What each entity is called: its first mention that is no pronoun, else its first."""
        first: dict[int, Word] = {}
        named: dict[int, Word] = {}
        for word in mentions_in(self.sentences):
            entity = int(word.token)
            first.setdefault(entity, word)
            if entity not in named and not _is_pronoun(word.words):
                named[entity] = word
        return {entity: named.get(entity, word).shown for entity, word in sorted(first.items())}

    def entities(self) -> int:
        """How many different ones the text mentions."""
        return len({word.token for word in mentions_in(self.sentences)})

    def surfaces(self, lexicon: Lexicon) -> dict[tuple[str, ...], int]:
        """Words that mention one entity and nothing else: capitalised, or unknown.

        Unknown ones in the model's own spelling, too.
        """
        owners: dict[tuple[str, ...], set[int]] = {}
        for word in mentions_in(self.sentences):
            if _is_pronoun(word.words):
                continue
            first, written = word.words[0], tuple(word.words)
            unknown = first not in lexicon
            spellings = {written} if unknown or first[0].isupper() else set()
            if unknown:
                spellings.add(_spelled(written, lexicon))
            for words in spellings:
                owners.setdefault(words, set()).add(int(word.token))
        return {words: next(iter(owner)) for words, owner in owners.items() if len(owner) == 1}


Text = str | Document | AnonymizedDocument | PreparedText


def prepare(
    text: Text,
    lexicon: Lexicon,
    kinds: Kinds = None,
    resolver: Resolver | None = None,
    *,
    since: From | None = None,
    border: int = 0,
) -> PreparedText:
    """Find the entities of a text; ValueError where it has no word.

    `since` says from when on a name or an unknown word is one; as the model's own texts where not
    given. No mention spans the `border`, before which so many characters stand.
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
        document, marked = _of_anonymized(text)
        marks = marked.mentions
        if "unknown" in chosen:
            raise ValueError(f"document {text.name!r} is anonymised already, expected chains")
    else:
        document = text if isinstance(text, Document) else _parsed(text, inline="inline" in chosen)
        check(document)
        config = AnonymizeConfig(
            keep_single="inline" in chosen, entities_from=since or _since(lexicon)
        )
        found = _with_chains(document, chosen, resolver)
        marks = find_entities(found, chosen, lexicon, config).mentions
    document = document if document.spans else _written(document)
    marks = _apart(document, marks, border) if border else marks
    return _prepared(document, marks, lexicon)


def _since(lexicon: Lexicon) -> From:
    settings = lexicon.vocabulary.settings
    return "repeated" if settings and settings.entities_from == "repeated" else "first"


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
            f"document {text.name!r} is anonymised already, expected chains, "
            f"not {', '.join(chosen)}"
        )
    if "none" in chosen and len(chosen) > 1:
        raise ValueError(f"entities {', '.join(chosen)}: none goes with no other kind")
    return chosen


def _parsed(text: str, *, inline: bool) -> Document:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the character {text[error.start]!r} of the text cannot be written as UTF-8"
        ) from None
    return document_of(text, inline=inline)


def _with_chains(document: Document, kinds: Sequence[Kind], resolver: Resolver | None) -> Document:
    """The document with the chains that count."""
    found = document if {"chains", "inline"}.intersection(kinds) else replace(document, chains=())
    if "resolver" in kinds:
        if resolver is None:
            raise ValueError("entities 'resolver' need a coreference model: none was given")
        resolved = resolve(replace(document, chains=()), resolver)
        found = replace(found, chains=[*found.chains, *resolved.chains])
    return found


def _of_anonymized(document: AnonymizedDocument) -> tuple[Document, MarkedDocument]:
    """The document with its mentions' words, where they are known, and its marks."""
    mentions = sum(isinstance(t, int) for sentence in document.sentences for t in sentence)
    if document.surfaces and len(document.surfaces) != mentions:
        raise ValueError(
            f"document {document.name!r} has the words of {len(document.surfaces)} mentions, "
            f"expected {mentions}"
        )
    if not any(document.sentences):
        raise ValueError(f"document {document.name!r} is empty: expected at least one word")
    surfaces = iter(document.surfaces)
    sentences: list[list[str]] = []
    marks: list[list[Span]] = []
    for sentence in document.sentences:
        sentences.append([])
        marks.append([])
        for token in sentence:
            start = len(sentences[-1])
            if isinstance(token, str):
                sentences[-1].append(token)
            else:
                sentences[-1] += next(surfaces, ()) or (f"[{token}]",)
                marks[-1].append(Span(start, len(sentences[-1]), token))
    written = Document(name=document.name, sentences=sentences)
    return written, MarkedDocument(name=document.name, sentences=sentences, mentions=marks)


def _written(document: Document) -> Document:
    """The document with a text: its words with blanks between, a sentence a line."""
    spans: list[list[Span]] = []
    place = 0
    for sentence in document.sentences:
        spans.append([])
        for word in sentence:
            spans[-1].append(Span(place, place + len(word)))
            place += len(word) + 1
    text = "\n".join(" ".join(sentence) for sentence in document.sentences)
    return replace(document, text=text, spans=spans, paragraphs=[0] * len(document.sentences))


def _apart(
    document: Document, marks: Sequence[Sequence[Span]], border: int
) -> Sequence[Sequence[Span]]:
    """The marks without those that begin before the border and end behind it."""
    apart = []
    for spans, found in zip(document.spans, marks, strict=True):
        for start, end, _ in spans:
            if start < border < end:
                word = document.text[start:end]
                raise ValueError(f"the border lies in {word!r}, expected between two words")
        apart.append([m for m in found if not spans[m.start].start < border < spans[m.end - 1].end])
    return apart


def _prepared(
    document: Document, marks: Sequence[Sequence[Span]], lexicon: Lexicon
) -> PreparedText:
    name = f"{document.name}:{document.part}" if document.part else document.name
    marked = MarkedDocument(name=name, sentences=document.sentences, mentions=marks)
    sentences: list[list[Word]] = []
    for words, tokens, spans in zip(
        document.sentences, marked.tokens(), document.spans, strict=True
    ):
        sentences.append([])
        for first, end, entity in tokens:
            token = lexicon.spelled(words[first]) if entity is None else entity
            written = [document.text[start:stop] for start, stop, _ in spans[first:end]]
            unknown = isinstance(token, str) and token not in lexicon.vocabulary
            place = spans[first].start, spans[end - 1].end
            sentences[-1].append(Word(token, tuple(written), unknown, *place))
    return PreparedText(
        name=name, sentences=sentences, text=document.text, paragraphs=document.paragraphs
    )


def tokens_of(
    sentence: str,
    names: Mapping[int, str],
    surfaces: Mapping[tuple[str, ...], int],
    lexicon: Lexicon,
) -> list[Token]:
    """The tokens of a sentence about a text whose entities are known; a gap stays [].

    [3] is the entity the text itself calls [3] (inline markup), else entity 3; ValueError where
    there is none.
    """

    def entity(words: Sequence[str]) -> int | None:
        found = surfaces.get(tuple(words))
        return surfaces.get(_spelled(words, lexicon)) if found is None else found

    numbers = {name: number for number, name in names.items()}
    longest = max(map(len, surfaces), default=0)
    words, tokens = _WORD.findall(sentence), list[Token]()
    place = 0
    while place < len(words):
        word = words[place]
        sizes = range(min(longest, len(words) - place), 0, -1)
        size = next((n for n in sizes if entity(words[place : place + n]) is not None), 1)
        if (mentioned := entity(words[place : place + size])) is not None:
            tokens.append(mentioned)
        elif word[1:-1].isdecimal() and word[0] == "[":
            tokens.append(numbers.get(word, int(word[1:-1])))
        else:
            tokens.append(word)
        place += size
    check_entities(tokens, names)
    return tokens


def check_entities(tokens: Iterable[Token], names: Mapping[int, str], *, new: bool = False) -> None:
    """ValueError where a token mentions an entity that the text does not have.

    A `new` one may come, if it has the next number.
    """
    count = max(names, default=0)
    for token in tokens:
        if new and token == count + 1:
            count += 1
        elif isinstance(token, int) and token not in names and not (new and 0 < token <= count):
            expected = f"[1] to [{max(names)}]" if names else "none, since it has no entities"
            raise ValueError(f"[{token}] mentions no entity of the text: expected {expected}")


def mentions_in(sentences: Words) -> Iterable[Word]:
    """The words that are mentions, in reading order."""
    return (word for sentence in sentences for word in sentence if isinstance(word.token, int))


def _spelled(words: Sequence[str], lexicon: Lexicon) -> tuple[str, ...]:
    return tuple(map(lexicon.spelled, words))


def _is_pronoun(words: Sequence[str]) -> bool:
    return len(words) == 1 and words[0].lower() in PRONOUNS
