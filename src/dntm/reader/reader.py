"""Reader: applies a trained model to texts.

    reader = Reader.from_pretrained("runs/d")
    reading = reader.read("Old Marta kept the ferry. Every morning Marta rowed across.")

Surprisals are also computed under the static baseline (see `reader/engine.py`). Values are computed
in double precision and are the same to 1e-9 in every batch, and whether a text is read at once or
as a stream.

`token_score`, `sequence_score` and `conditional_score` have the names and arguments of minicons'
IncrementalLMScorer. Three things differ: the first word has a score too, a mention is one token,
and the ends of sentences, which this model predicts, count only with `eos_token`.
"""

import math
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self, get_args

import torch
from torch import Tensor
from typing_extensions import TypeAliasType

from dntm.corpus.document import Document, Token
from dntm.corpus.resolver import Resolver
from dntm.files import BUNDLED, DEFAULT
from dntm.reader import questions
from dntm.reader.engine import Engine, ModelPair, Precision
from dntm.reader.meaning import Meanings
from dntm.reader.questions import Choose, Continuation, Filling, Predictions
from dntm.reader.reading import Reading, SentenceReading, TokenReading, Unit, check_unit
from dntm.reader.streaming import History, ReadingBuilder, ReadingPosition, read_stream, read_texts
from dntm.reader.text import Kinds, PreparedText, Text, check_entities, prepare, tokens_of

Reduction = TypeAliasType("Reduction", Callable[[Tensor], float])
"""Reduces a text's log-probabilities, a vector in reading order, to one number."""
Batch = TypeAliasType("Batch", Text | Sequence[Text])
"""One text or several."""
_Scored = tuple[TokenReading, float]


class Reader:
    """A trained model and its static baseline, ready to read texts.

    `entities` is "chains", "names", "unknown", "inline", "resolver", "none" or several of them; if
    omitted, annotated chains, or else names and unknown words (see docs/reading.md).
    """

    def __init__(self, models: ModelPair, resolver: Resolver | None = None) -> None:
        self.models = models
        self.vocabulary = models.vocabulary
        self.engine = Engine(models)
        self.meanings = Meanings(models.dynamic, models.vocabulary)
        self._resolver = resolver
        self._id = secrets.token_bytes(16)

    def __repr__(self) -> str:
        words, slots = len(self.vocabulary.words), self.vocabulary.entities
        return f"Reader({words:,} words, {slots} entities, compared with {self.models.static_name})"

    @classmethod
    def from_pretrained(
        cls,
        path: Path | str | None = None,
        static: Path | str | None = None,
        resolver: Resolver | None = None,
        *,
        precision: Precision = "auto",
        without: str | Collection[str] = (),
    ) -> Self:
        """Load a run folder or a checkpoint; if `path` is omitted, the bundled model.

        `static` is the checkpoint of a baseline to compare with, or "default" for that of the
        bundled model. `resolver` finds the entities of texts that are read with
        entities="resolver". Single `precision` is faster; values then differ by up to 1e-5 between
        batches. `without` leaves out parts of both models: "memory", or extensions such as
        "pointer".
        """
        static = BUNDLED / "static" if str(static) == DEFAULT else static
        parts = [without] if isinstance(without, str) else without
        return cls(ModelPair.load(path, static, precision, parts), resolver)

    def prepare(self, text: Text, entities: Kinds = None, *, border: int = 0) -> PreparedText:
        """Find the entities of a text; ValueError if it has no word.

        No mention crosses the `border`, a number of characters.
        """
        return prepare(text, self.engine.lexicon, entities, self._resolver, border=border)

    def read(self, text: Text, *, entities: Kinds = None, unit: Unit = "bits") -> Reading:
        """Read a whole text."""
        return next(self.read_all([self.prepare(text, entities)], unit=unit))

    def read_all(
        self,
        texts: Iterable[Text],
        *,
        entities: Kinds = None,
        unit: Unit = "bits",
        meanings: bool = True,
        parts: bool = False,
    ) -> Iterator[Reading]:
        """Read many texts in batches; without `meanings`, only their tokens.

        With `parts`, a long text gives several readings of some sentences each, as soon as they
        have been read.
        """
        check_unit(unit)
        if isinstance(texts, (str, bytes, Document, PreparedText)):
            raise TypeError(f"expected several texts, not one {type(texts).__name__}: use read()")
        prepared = (self._prepared(n, text, entities) for n, text in enumerate(texts))
        found = self.meanings if meanings else None
        return read_texts(self.engine, prepared, unit, found, parts=parts)

    def _prepared(self, index: int, text: Text, entities: Kinds) -> PreparedText:
        """Prepare one of several texts; errors name its index."""
        try:
            return self.prepare(text, entities)
        except ValueError as error:
            raise ValueError(f"texts[{index}] ({text!r:.40}): {error}") from None

    def stream(
        self,
        text: Text,
        *,
        entities: Kinds = None,
        unit: Unit = "bits",
        known: Sequence[SentenceReading] = (),
    ) -> Iterator[SentenceReading]:
        """Read sentence by sentence; reading can continue from the position of every sentence.

        `known` are sentences of an earlier stream over this text, perhaps before an edit: unchanged
        sentences at the beginning are returned as they are, and only the rest is read.
        """
        check_unit(unit)
        prepared = self.prepare(text, entities)
        builder = ReadingBuilder(self.engine, prepared, unit, self.meanings)
        return read_stream(builder, self._beginning(prepared, unit), known)

    def _beginning(self, text: PreparedText, unit: Unit) -> ReadingPosition:
        """The position before the first sentence."""
        return ReadingPosition(
            sentences=0,
            states=self.engine.initial(),
            slots=self.engine.slots(),
            strings=self.engine.strings(),
            occurrences={},
            evidence={},
            names=text.names(),
            surfaces=text.surfaces(self.engine.lexicon),
            reader=self._id,
            digest=self._id + unit.encode(),
        )

    def position(self, history: History, *, entities: Kinds = None) -> ReadingPosition:
        """The position after a text; an empty string is the beginning."""
        if isinstance(history, ReadingPosition):
            if history.reader != self._id:
                raise ValueError("the position belongs to another reader, whose models differ")
            return history
        empty = PreparedText(name="", sentences=())
        text = empty if history == "" else self.prepare(history, entities)
        position = self._beginning(text, "bits")
        for sentence in self.stream(text):
            position = sentence.position or position
        return position

    def predictions(
        self,
        history: History,
        prefix: str | Sequence[Token] = "",
        k: int = 10,
        *,
        entities: Kinds = None,
    ) -> Predictions:
        """The k most likely next tokens after a text and the beginning of a sentence.

        `prefix` can mention the text's entities by name or as [1]. As a sequence it holds words and
        entity numbers; the next numbers introduce new entities.
        """
        position, lexicon = self.position(history, entities=entities), self.engine.lexicon
        if isinstance(prefix, str):
            prefix = tokens_of(prefix, position.names, position.surfaces, lexicon)
        check_entities(prefix, position.names, new=True)
        return questions.predict(self.engine, position, prefix, k)

    def fill(
        self,
        sentence: str,
        history: History = "",
        *,
        entities: Kinds = None,
        choose: Choose = "both",
        candidates: int = 200,
        function_words: bool = False,
        unit: Unit = "bits",
    ) -> list[Filling]:
        """Rank words and entities for the gap [] of a sentence, the most likely sentence first.

        Candidates are ranked by the surprisal of the whole sentence. They are all entities of the
        history, and for each model as many content words as `candidates` (0: all), the most likely
        at the gap. With `function_words`, all words and punctuation are candidates.
        """
        check_unit(unit)
        if choose not in get_args(Choose):
            raise ValueError(f"choose {choose!r}, expected one of {', '.join(get_args(Choose))}")
        position = self.position(history, entities=entities)
        return questions.fill_gap(
            self.engine,
            position,
            sentence,
            choose=choose,
            candidates=candidates,
            function_words=function_words,
            unit=unit,
        )

    def continue_text(
        self,
        history: History = "",
        *,
        sentences: int = 3,
        tokens: int = 60,
        temperature: float = 0.7,
        top_p: float = 0.9,
        seed: int = 0,
        entities: Kinds = None,
    ) -> Continuation:
        """Sample sentences of at most `tokens` tokens, which can mention the text's entities."""
        return questions.sample(
            self.models,
            self.position(history, entities=entities),
            sentences=sentences,
            tokens=tokens,
            temperature=temperature,
            top_p=top_p,
            seed=seed,
        )

    def token_score(
        self,
        batch: Batch,
        surprisal: bool = False,
        prob: bool = False,
        base_two: bool = False,
        rank: bool = False,
        *,
        entities: Kinds = None,
        eos_token: bool = False,
    ) -> list[list[tuple[Any, ...]]]:
        """The pair (word, log-probability in nats) for each word of each text.

        `surprisal` negates it, `base_two` converts it to bits, `prob` gives the probability. With
        `rank` a third value is the word's rank among all rows of the vocabulary, 1 for the most
        likely.
        """
        if prob and surprisal:
            raise ValueError("prob and surprisal are both set, expected one of them")
        texts, sign = self._prepare_batch(batch, entities), -1 if surprisal else 1
        scored: list[list[tuple[Any, ...]]] = []
        for text, found in zip(texts, self._scores(texts, prob, base_two), strict=True):
            ranks = [(r,) for r in self.engine.ranks(text)] if rank else [()] * len(found)
            rows = ((t, (t.word, sign * v, *r)) for (t, v), r in zip(found, ranks, strict=True))
            scored.append([row for token, row in rows if eos_token or not token.end])
        return scored

    def sequence_score(
        self,
        batch: Batch,
        reduction: Reduction | None = None,
        prob: bool = False,
        base_two: bool = False,
        *,
        entities: Kinds = None,
        eos_token: bool = False,
    ) -> list[float]:
        """One number per text: the reduction (by default the mean) of its log-probabilities."""
        scored = self._scores(self._prepare_batch(batch, entities), prob, base_two)
        return [_reduced(found, reduction, eos_token=eos_token) for found in scored]

    def conditional_score(  # noqa: PLR0917 (minicons' own order)
        self,
        prefix: str | Sequence[str],
        stimuli: str | Sequence[str],
        separator: str = " ",
        reduction: Reduction | None = None,
        prob: bool = False,
        base_two: bool = False,
        *,
        entities: Kinds = None,
        eos_token: bool = False,
    ) -> list[float]:
        """Score each stimulus after its prefix, or after one for all; no mention spans both."""
        ends = [stimuli] if isinstance(stimuli, str) else list(stimuli)
        begins = [prefix] * len(ends) if isinstance(prefix, str) else list(prefix)
        if len(begins) != len(ends):
            raise ValueError(f"{len(begins)} prefixes for {len(ends)} stimuli, expected as many")
        texts = [
            self.prepare(f"{begin}{separator}{end}", entities, border=len(begin))
            for begin, end in zip(begins, ends, strict=True)
        ]
        return [
            _reduced(_after(begin, found), reduction, eos_token=eos_token)
            for begin, found in zip(begins, self._scores(texts, prob, base_two), strict=True)
        ]

    def _prepare_batch(self, batch: Batch, entities: Kinds) -> list[PreparedText]:
        texts = [batch] if isinstance(batch, str | Document | PreparedText) else batch
        return [self.prepare(text, entities) for text in texts]

    def _scores(
        self, texts: Iterable[PreparedText], prob: bool, base_two: bool
    ) -> Iterator[Sequence[_Scored]]:
        """Every token of each text with its log-probability or, if `prob`, its probability."""
        if prob and base_two:
            raise ValueError("prob and base_two are both set, expected one of them")
        unit: Unit = "bits" if base_two else "nats"
        for reading in self.read_all(texts, unit=unit, meanings=False):
            values = (-token.surprisal for token in reading.tokens)
            shown = map(math.exp, values) if prob else values
            yield list(zip(reading.tokens, shown, strict=True))


def _after(prefix: str, scored: Sequence[_Scored]) -> Sequence[_Scored]:
    """The tokens after the prefix."""
    for place, (token, _) in enumerate(scored):
        if token.span[0] >= len(prefix) and not token.end:
            return scored[place:]
    raise ValueError(f"no word follows the prefix {prefix!r}, expected a stimulus of words")


def _reduced(scored: Sequence[_Scored], reduction: Reduction | None, *, eos_token: bool) -> float:
    counted = [value for token, value in scored if eos_token or not token.end]
    values = torch.tensor(counted, dtype=torch.float64)
    return float(reduction(values) if reduction else values.mean())
