"""Models of one text with an open vocabulary: nats per word and bits per character.

All models use one spelling, so that only their probabilities of rows differ. Unlike perplexities
over rows, these numbers can be compared with those of any other model of the same text.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.vocabulary import BOS, entity_rows
from dntm.model.baselines.ngram import NGram
from dntm.model.open_vocabulary import RowScores
from dntm.reader.engine import Engine
from dntm.reader.reader import Reader
from dntm.reader.reading import in_bits
from dntm.reader.text import PreparedText, as_text


@dataclass
class OpenScore:
    """The surprisal of some documents."""

    nats: float = 0.0
    words: int = 0
    characters: int = 0
    """As in `Reading.characters`."""

    @property
    def nats_per_word(self) -> float:
        """The ends of sentences are not counted as words, but their surprisal is."""
        return self.nats / self.words

    @property
    def bits_per_character(self) -> float:
        """The surprisal per character."""
        return in_bits(self.nats, "nats") / self.characters


def compare(
    reader: Reader, documents: Iterable[AnonymizedDocument], ngram: NGram | None = None
) -> dict[str, OpenScore]:
    """The scores of both models of a reader and, if given, of an n-gram model."""
    if (engine := reader.engine).models.spelling is None:
        raise ValueError("the model has no spelling.json: fit one with dntm spelling")
    found = {name: OpenScore() for name in ("model", "static", *(["ngram"] if ngram else []))}
    texts = [as_text(document) for document in documents]
    for text, reading in zip(
        texts, reader.read_all(texts, unit="nats", meanings=False), strict=True
    ):
        found["model"].nats += reading.surprisal
        found["static"].nats += reading.static_surprisal
        if ngram:
            found["ngram"].nats += _ngram_nats(engine, ngram, text)
        for score in found.values():
            score.words += sum(len(token.parts) for token in reading.tokens if not token.end)
            score.characters += reading.characters
    return found


def _ngram_nats(engine: Engine, ngram: NGram, text: PreparedText) -> float:
    encoded, strings = engine.encode_words(text.sentences, engine.slots()), engine.strings(models=1)
    assert strings is not None
    rows = np.concatenate(encoded.sentences)
    words = np.concatenate([[BOS, *sentence] for sentence in encoded.words])
    first = range(entity_rows(engine.models.vocabulary.entities).stop)
    each = [ngram.probabilities(rows, np.full_like(rows, row)) for row in first]
    columns = (np.stack(each, 1), ngram.probabilities(rows, words))
    with np.errstate(divide="ignore"):
        log_p = [np.log(column[rows != BOS]) for column in columns]
    cuts = np.cumsum([len(sentence) for sentence in encoded.words])[:-1]
    scores = zip(*(np.split(column, cuts) for column in log_p), strict=True)
    nats = 0.0
    for index, (sentence, own) in enumerate(zip(text.sentences, scores, strict=True)):
        parts = (encoded.sentences[index], encoded.words[index], encoded.evictions[index])
        [found] = strings.read(engine.sentence_strings(sentence, *parts), [RowScores(*own)])
        nats += sum(map(sum, found))
    return nats
