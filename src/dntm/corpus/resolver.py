"""Resolver: coreference chains of plain text, found by a coreference model.

The paper's corpus is annotated by hand (Section 4). A `Resolver` is anything that turns sentences
of words into chains of mentions. `StanzaResolver` runs the word-level coreference models of stanza
(extra: `coref`) on our words, so positions of mentions are positions in our sentences.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Protocol

from dntm.corpus.document import Mention

INSTALL = 'pip install "dntm[coref]"'
_PACKAGES = ("stanza", "transformers", "peft")
_DOWNLOAD = "python -c \"import stanza; stanza.download('en', processors='tokenize,coref')\""
_NOT_A_MODEL = (AttributeError, EOFError, LookupError, RuntimeError, TypeError, ValueError)
"""Errors for a file that is not a model of stanza, in addition to UnpicklingError."""
_BLANK = "_"
"""Stanza's replacement for a word that its tokenizer drops."""


class Resolver(Protocol):
    """Finds the coreference chains of a text."""

    def chains(self, sentences: Sequence[Sequence[str]]) -> list[list[Mention]]:
        """The mentions of each entity in reading order; chains ordered by first mention."""


class StanzaResolver:
    """A stanza coreference model, loaded from disk and never from the network."""

    def __init__(self, model: Path) -> None:
        """Load the weights: a .pt file, or a folder filled by `stanza.download`."""
        if missing := [package for package in _PACKAGES if find_spec(package) is None]:
            raise ValueError(f"coreference needs {', '.join(missing)}: {INSTALL}")
        self._model = _load(_weights(model))

    def chains(self, sentences: Sequence[Sequence[str]]) -> list[list[Mention]]:
        """The chains over `sentences`; no span is in two of them."""
        import torch

        places = [(s, w) for s, sentence in enumerate(sentences) for w in range(len(sentence))]
        if not places:
            return []
        text = {
            "document_id": "wb",  # the genre comes first in OntoNotes' names: wb is web text
            "cased_words": [self._readable(sentences[s][w]) for s, w in places],
            "sent_id": [s for s, _ in places],
            "speaker": [_BLANK] * len(places),
        }
        with torch.inference_mode():
            result = self._model.run(self._model.build_doc(text))
        return sorted(self._mentions(result, places))

    def _readable(self, word: str) -> str:
        """The word, or a blank if its subwords would shift those of all later words.

        Dropped characters leave no subword, and a word like "[SEP]" becomes a special token, which
        stanza removes after encoding.
        """
        tokenizer = self._model.tokenizer
        special = {getattr(tokenizer, f"{role}_token") for role in ("cls", "sep", "pad", "eos")}
        subwords = tokenizer.tokenize(word)
        return word if subwords and special.isdisjoint(subwords) else _BLANK

    def _mentions(self, result: Any, places: Sequence[tuple[int, int]]) -> Iterator[list[Mention]]:
        # A zero is an omitted pronoun, which the models of some languages mark: it has no words.
        zeros = iter((result.zero_scores.flatten() > 0).tolist())
        clusters = [
            {_mention(span, places) for span, zero in zip(spans, zeros, strict=False) if not zero}
            for spans in result.span_clusters
        ]
        taken: set[Mention] = set()
        # Two heads can have the same span: it stays in the longest chain.
        for cluster in sorted(clusters, key=len, reverse=True):
            mentions = cluster - taken
            if len(mentions) > 1:
                taken |= mentions
                yield sorted(mentions)


def _mention(span: tuple[int, int], places: Sequence[tuple[int, int]]) -> Mention:
    (sentence, first), (other, last) = places[span[0]], places[span[1] - 1]
    assert sentence == other, "stanza scores only spans inside a sentence"
    return Mention(sentence, first, last + 1)


def _weights(model: Path) -> Path:
    """The .pt file of `--coref-model`."""
    if model.is_file():
        return model
    patterns = ("*.pt", "coref/*.pt", "*/coref/*.pt")
    found = sorted({path for pattern in patterns for path in model.glob(pattern)})
    if len(found) != 1:
        names = ", ".join(str(path.relative_to(model)) for path in found) or "none"
        raise ValueError(
            f"--coref-model {model}: expected the path of one .pt file, found {names} "
            f"(to download: {_DOWNLOAD})"
        )
    return found[0]


def _load(weights: Path) -> Any:
    import torch
    from stanza.models.common.foundation_cache import FoundationCache
    from stanza.models.coref.model import CorefModel

    training = {"bert_optimizer", "general_optimizer", "bert_scheduler", "general_scheduler"}
    try:
        with _offline():
            return CorefModel.load_model(
                path=str(weights),
                ignore=training,
                config_update={"log_norms": False, "device": "cpu"},
                foundation_cache=FoundationCache(local_files_only=True),
            )
    except (*_NOT_A_MODEL, UnpicklingError, PermissionError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"--coref-model {weights} is not a stanza model: {reason}") from error
    except OSError:
        saved = torch.load(weights, map_location="cpu", weights_only=True, mmap=True)
        raise ValueError(
            f"--coref-model {weights} needs the transformer {saved['config']['bert_model']!r}, "
            "which is not on this machine: transformers.AutoModel.from_pretrained downloads it"
        ) from None


@contextmanager
def _offline() -> Iterator[None]:
    """Keep the transformer's loader from the network.

    `local_files_only` is not enough: the loader looks for an adapter and retries for half a minute.
    """
    constants = import_module("huggingface_hub.constants")
    before = constants.HF_HUB_OFFLINE
    vars(constants)["HF_HUB_OFFLINE"] = True
    try:
        yield
    finally:
        vars(constants)["HF_HUB_OFFLINE"] = before
