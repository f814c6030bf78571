"""Converts a text to the tokens that a model reads, with their words and positions in the text.

Entities are found as in datasets (`corpus.text`, `corpus.anonymize`), with the settings of the
model. A text may have any number of entities.

A sentence that refers to a text (a gap to fill, a beginning to continue) can mention its entities
by number, such as [1], or by words that mention one of them and nothing else.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from typing_extensions import TypeAliasType

from dntm.corpus.anonymize import AnonymizeConfig, find_entities
from dntm.corpus.document import AnonymizedDocument, Document, Span, Token, check
from dntm.corpus.entities import PRONOUNS, EntityFinder, Lexicon
from dntm.corpus.resolver import Resolver
from dntm.corpus.text import WORD_RULES, as_prose, document_of, sentences_in

Kind = Literal["chains", "names", "unknown", "inline", "resolver", "none"]
Kinds = TypeAliasType("Kinds", Kind | Sequence[Kind] | None)
"""What counts as an entity. None: chains if the text has them, else names and unknown words."""
GAP = "[]"
"""A missing word."""
_WORD = re.compile("|".join((r"\[\d{0,6}\]", *WORD_RULES)))


@dataclass(frozen=True, slots=True)
class Word:
    """A token as the model reads it, and the words of the text that it stands for."""

    token: Token
    words: Sequence[str]
    start: int = 0
    end: int = 0
    """Its characters in the text."""
    starts: Sequence[int] = ()
    """The first character of each of the words."""

    @property
    def shown(self) -> str:
        """The words as running text."""
        return as_prose(self.words)


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedText:
    """A text ready to be read."""

    name: str
    sentences: Sequence[Sequence[Word]]
    text: str = ""
    """The original text; for an annotated document, its words joined by spaces."""
    paragraphs: Sequence[int] = ()
    """The paragraph of each sentence, from 0."""
    rest: Iterator[tuple[Sequence[Word], int]] | None = None
    """The sentences and paragraphs of a text that is prepared while it is read."""

    def __repr__(self) -> str:
        sizes = f"sentences={len(self.sentences)}, entities={len(self.names())}"
        return f"PreparedText({self.name!r}, {sizes})"

    def tokens(self) -> Iterator[list[Token]]:
        """The tokens of each sentence."""
        return ([word.token for word in sentence] for sentence in self.sentences)

    def mentions(self) -> Iterator[Word]:
        """The mentions, in reading order."""
        return (word for s in self.sentences for word in s if isinstance(word.token, int))

    def names(self) -> dict[int, str]:
        """The name of each entity: its first mention that is not a pronoun, else its first."""
        named: dict[int, Word] = {}
        for word in self.mentions():
            known = named.setdefault(int(word.token), word)
            if _is_pronoun(known.words) and not _is_pronoun(word.words):
                named[int(word.token)] = word
        return {entity: word.shown for entity, word in sorted(named.items())}

    def unknown(self, lexicon: Lexicon) -> list[int]:
        """The entities whose name ends with an unknown word: Uncle Zorp, but not Zorp Street."""
        names = self.names().items()
        return [entity for entity, name in names if not lexicon.is_known(name.split()[-1])]

    def surfaces(self, lexicon: Lexicon) -> dict[tuple[str, ...], int]:
        """Capitalized or unknown words that mention one entity and nothing else.

        Unknown words are also listed in the vocabulary's spelling.
        """
        owners: dict[tuple[str, ...], set[int]] = {}
        for word in self.mentions():
            if _is_pronoun(word.words):
                continue
            first, spellings = word.words[0], {tuple(word.words)}
            if first not in lexicon:
                spellings.add(_spelled(word.words, lexicon))
            elif not first[0].isupper():
                continue
            for words in spellings:
                owners.setdefault(words, set()).add(int(word.token))
        return {words: next(iter(owner)) for words, owner in owners.items() if len(owner) == 1}


Text = TypeAliasType("Text", str | Document | PreparedText)
"""A text, an annotated document, or one of them with its entities found."""


def prepare(
    text: Text,
    lexicon: Lexicon,
    kinds: Kinds = None,
    resolver: Resolver | None = None,
    *,
    border: int = 0,
    lazily: bool = False,
) -> PreparedText:
    """Find the entities of a text (see `Reader.prepare`)."""
    if isinstance(text, PreparedText):
        if kinds is not None:
            raise ValueError(
                f"the text {text.name!r} is already prepared, expected no entities, not {kinds!r}"
            )
        return text
    if not isinstance(text, (str, Document)):
        raise TypeError(f"expected a text or a document, not {type(text).__name__} {text!r:.40}")
    chosen = _chosen(text, kinds)
    inline = "inline" in chosen
    document = text if isinstance(text, Document) else document_of(text, inline=inline)
    check(document)
    since = lexicon.vocabulary.entities_from
    config = AnonymizeConfig(keep_single=inline, entities_from=since)
    if lazily:
        assert since == "first" and {"names", "unknown", "none"}.issuperset(chosen)  # noqa: PT018
        name = f"{document.name}:{document.part}" if document.part else document.name
        rest = _lazily(document.text, lexicon, chosen)
        return PreparedText(name=name, sentences=(), text=document.text, rest=rest)
    document = document if document.spans else _written(document)
    found = find_entities(_with_chains(document, chosen, resolver), chosen, lexicon, config)
    found = _apart(found, border) if border else found
    parts = zip(found.sentences, found.tokens(), found.spans, strict=True)
    sentences = [_words(*sentence, lexicon) for sentence in parts]
    return PreparedText(
        name=found.name, sentences=sentences, text=found.text, paragraphs=found.paragraphs
    )


def _chosen(text: str | Document, kinds: Kinds) -> tuple[Kind, ...]:
    if kinds is None:
        annotated = isinstance(text, Document) and text.chains
        return ("chains",) if annotated else ("names", "unknown")
    chosen: tuple[Kind, ...] = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if odd := [kind for kind in chosen if kind not in get_args(Kind)]:
        raise ValueError(f"entities {odd[0]!r}, expected one of {', '.join(get_args(Kind))}")
    if isinstance(text, str) and "chains" in chosen:
        raise ValueError(
            "a plain text has no chains: expected names, unknown, inline or resolver, "
            "or an annotated document"
        )
    if "none" in chosen and len(chosen) > 1:
        raise ValueError(f"entities {', '.join(chosen)}: none cannot be combined with another kind")
    return chosen


def _with_chains(document: Document, kinds: Sequence[Kind], resolver: Resolver | None) -> Document:
    """The document with the chains of the chosen kinds."""
    found = document if {"chains", "inline"}.intersection(kinds) else replace(document, chains=())
    if "resolver" in kinds:
        if resolver is None:
            raise ValueError("entities 'resolver' needs a coreference model: none was given")
        found = replace(found, chains=[*found.chains, *resolver.chains(document.sentences)])
        check(found)
    return found


def _written(document: Document) -> Document:
    """The document with a text: one sentence per line, words joined by spaces."""
    spans: list[list[Span]] = []
    place = 0
    for sentence in document.sentences:
        spans.append([])
        for word in sentence:
            spans[-1].append(Span(place, place + len(word)))
            place += len(word) + 1
    text = "\n".join(" ".join(sentence) for sentence in document.sentences)
    return replace(document, text=text, spans=spans, paragraphs=[0] * len(document.sentences))


def _apart(document: Document, border: int) -> Document:
    """The document without the mentions that cross the border."""
    apart = []
    for spans, mentions in zip(document.spans, document.mentions, strict=True):
        for start, end, _ in spans:
            if start < border < end:
                word = document.text[start:end]
                raise ValueError(f"the border is inside {word!r}, expected between two words")
        places = [(m, spans[m.start].start, spans[m.end - 1].end) for m in mentions]
        apart.append([m for m, start, end in places if not start < border < end])
    return replace(document, mentions=apart)


def _lazily(text: str, lexicon: Lexicon, kinds: Sequence[Kind]) -> Iterator[tuple[list[Word], int]]:
    finder = EntityFinder(lexicon, kinds, first=1)
    for words, spans, paragraph in sentences_in(text):
        mentions = [] if "none" in kinds else finder.read(words)
        inside = {place for span in mentions for place in range(span.start, span.end)}
        others = [Span(w, w + 1) for w in range(len(words)) if w not in inside]
        yield _words(words, sorted([*mentions, *others]), spans, lexicon), paragraph


def _words(
    words: Sequence[str], tokens: Sequence[Span], spans: Sequence[Span], lexicon: Lexicon
) -> list[Word]:
    """A sentence, given its words, the words of each token, and the characters of each word."""
    found = []
    for first, end, entity in tokens:
        token = lexicon.spelled(words[first]) if entity is None else entity
        own, starts = tuple(words[first:end]), tuple(span.start for span in spans[first:end])
        found.append(Word(token, own, starts[0], spans[end - 1].end, starts))
    return found


def as_text(document: AnonymizedDocument) -> PreparedText:
    """A document of a dataset, with the words of its mentions."""
    surfaces = iter(document.surfaces)
    sentences = [
        [Word(t, (t,) if isinstance(t, str) else next(surfaces, (f"[{t}]",))) for t in sentence]
        for sentence in document.sentences
    ]
    return PreparedText(name=document.name, sentences=sentences)


def tokens_of(
    sentence: str,
    names: Mapping[int, str],
    surfaces: Mapping[tuple[str, ...], int],
    lexicon: Lexicon,
) -> list[Token]:
    """The tokens of a sentence that refers to the entities of a text; a gap stays [].

    [3] is the entity named [3] in the text (inline markup), else entity 3; ValueError if there is
    none.
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
    """Raise ValueError if a token mentions an entity that the text does not have.

    With `new`, the next number introduces a new entity.
    """
    count = max(names, default=0)
    for token in tokens:
        if new and token == count + 1:
            count += 1
        elif isinstance(token, int) and token not in names and not (new and 0 < token <= count):
            expected = f"expected [1] to [{max(names)}]" if names else "the text has none"
            raise ValueError(f"[{token}] is not an entity of the text: {expected}")


def _spelled(words: Sequence[str], lexicon: Lexicon) -> tuple[str, ...]:
    return tuple(map(lexicon.spelled, words))


def _is_pronoun(words: Sequence[str]) -> bool:
    return len(words) == 1 and words[0].lower() in PRONOUNS
