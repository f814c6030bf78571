"""Comparison of models with an open vocabulary: nats per word and bits per character.

All models use the same spelling, so only their probabilities of rows differ. Unlike perplexities
over rows, these numbers are comparable with those of any other model on the same text.
"""

from collections.abc import Iterable

import numpy as np

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.entity_slots import DocumentRows
from dntm.corpus.vocabulary import BOS, is_label
from dntm.model.baselines.ngram import NGram
from dntm.model.language_model import RowScores
from dntm.model.strings import StringReader
from dntm.reader.reader import Reader
from dntm.reader.reading import in_bits
from dntm.reader.text import as_text


def compare(
    reader: Reader, documents: Iterable[AnonymizedDocument], ngram: NGram | None = None
) -> dict[str, dict[str, float]]:
    """The scores of both models of a reader and, if given, of an n-gram model.

    The surprisal of sentence ends is included, but they are not counted as words.
    """
    engine, nats, words, characters = reader.engine, dict[str, float](), 0, 0
    texts = [as_text(document) for document in documents]
    for text in texts:
        if any(map(is_label, text.names().values())):
            raise ValueError(f"{text.name}: the words of its mentions are not known")
    if engine.models.spelling is None:
        raise ValueError("the model has no spelling.json: fit one with dntm spelling")
    readings = reader.read_all(texts, unit="nats", meanings=False)
    for text, reading in zip(texts, readings, strict=True):
        found = {"model": reading.surprisal, "static": reading.static_surprisal}
        if ngram and (strings := engine.strings(models=1)):
            encoded = engine.encode_words(text.sentences, engine.slots())
            found["ngram"] = _ngram_nats(ngram, encoded, strings)
        nats = {name: nats.get(name, 0.0) + own for name, own in found.items()}
        words += sum(len(token.parts) for token in reading.tokens if not token.end)
        characters += reading.characters
    return {
        name: {
            "nats_per_word": total / words,
            "bits_per_character": in_bits(total, "nats") / characters,
            "words": words,
        }
        for name, total in nats.items()
    }


def _ngram_nats(ngram: NGram, encoded: DocumentRows, strings: StringReader) -> float:
    rows = np.concatenate(encoded.sentences)
    words = np.concatenate([[BOS, *sentence.words] for sentence in encoded.strings])
    wanted = [*(np.full_like(rows, row) for row in range(strings.rows)), words]
    p = np.stack([ngram.probabilities(rows, others)[rows != BOS] for others in wanted], 1)
    p[:, BOS] = 0  # the other rows have all of the probability
    with np.errstate(divide="ignore"):
        log_p = np.log(p)
    nats, start = 0.0, 0
    for sentence in encoded.strings:
        own = log_p[start : (start := start + len(sentence.words))]
        [found] = strings.read(sentence, [RowScores(own[:, :-1], own[:, -1])])
        nats += sum(map(sum, found))
    return nats
