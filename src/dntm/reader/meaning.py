"""Meaning: predicted words for an entity (Eq. 9), and its nearest words (Eqs. 9 and 10).

    p(w | e)   = softmax_w(s_n cos(g_e, x_w))                               predicted words
    near(e, w) = cos(x_e - m, x_w - m) - mean_k cos(b_k - m, x_w - m)       nearest words

Both are computed for content words only: words in `function_words.txt`, numbers and letters are
never predicted. The scale s_n after n mentions is learned if a model is trained to name hidden
words (`extensions.naming`); the nearest input words of such a model are its predicted words. For
other models p is a softmax of `near` with scale 10, which ranks words but is not calibrated.

With a pretrained core, the pieces nearest to x_e say nothing about the meaning of e. The predicted
words are those that the core expects in place of the mentions, more than in other contexts:

    p(w | e) = softmax_w(h_e . y_w + b_w - (h_0 . y_w + b_w) / 2)

h_e is the mean state before the mentions, and h_0 the mean state after single pieces. Before it is
normalized, p is the geometric mean of the core's distributions before the mentions, divided by the
square root of a typical distribution. It is not calibrated either.

Words of the entity's own sentences are not predicted: they describe it, but are rarely its meaning.
Sentences that seem to define it ("a blicket is a dog", "a kind of dog") are exceptions.

`near` corrects for frequency. Embeddings share one large direction, so the mean m of the words is
subtracted. A word that is near to every entity is uninformative, so its mean similarity to entities
not yet mentioned (their own rows b_k) is subtracted as well.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.resources import files
from itertools import islice
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import UNK, Vocabulary, entity_rows, row_of_entity
from dntm.model.extensions.naming import naming_term
from dntm.model.language_model import DynamicTextModel
from dntm.model.pretrained_core import PretrainedCore
from dntm.reader.reading import EntityReading, Neighbor

COMPARED = 10_000
"""The most frequent content words, with which entities are compared."""
SHOWN = 3
"""Predicted words that are shown; the confidence is the sum of their probabilities."""
_UNTRAINED_SCALE = 10.0
_SAYING = frozenset(
    "is was are were be being called named means kind kinds sort sorts type types".split()
)
"""Next to or near a mention, these words say what the entity is."""
_REACH = 2
_LEAST = 1e-12
CONFIDENCE = {"high confidence": 0.6, "medium confidence": 0.3, "low confidence": 0.0}
"""Each label and the lowest probability that has it."""


def confidence_label(probability: float | None) -> str:
    """A probability in words; empty if the model was not trained to predict words."""
    if probability is None:
        return ""
    return next(label for label, least in CONFIDENCE.items() if probability >= least)


def content_words(words: Sequence[str]) -> Iterator[int]:
    """The positions of content words; capitalized forms of other words are left out."""
    lines = files("dntm.reader").joinpath("function_words.txt").read_text("utf-8").splitlines()
    left_out = {word for line in lines if line[-1:] not in (":", ".") for word in line.split()}
    spelled = set(words)
    for place, word in enumerate(words):
        if (
            len(word) > 1
            and word[0].isalpha()
            and not any(map(str.isdigit, word))
            and (lower := word.lower()) not in left_out
            and (lower == word or lower not in spelled)
        ):
            yield place


class Evidence(NamedTuple):
    """What is known about the meaning of an entity in addition to d."""

    own_words: frozenset[int] = frozenset()
    """The rows of words that cannot be its predicted words."""
    mentions: int = 0
    expected: Float[Tensor, " hidden_dim"] = torch.zeros(())
    """The sum of the core's states before the mentions."""


class Meanings:
    """Finds the predicted and the nearest words of entities."""

    def __init__(self, model: DynamicTextModel, vocabulary: Vocabulary, k: int = 8) -> None:
        self._model = model
        self._vocabulary = vocabulary
        self._k = k
        self._naming = naming_term(model.terms)
        dynamic = self._naming is not None or model.config.dynamic_input
        self.naming_space = "input" if dynamic else "output"
        """The space in which words are predicted."""

    @cached_property
    def spaces(self) -> Mapping[str, "Space"]:
        """The input and the output layer; built on first use, since scores do not need them."""
        entities = entity_rows(self._vocabulary.entities)
        whole = self._vocabulary.whole_words()
        places = list(islice(content_words(whole), COMPARED))
        words = [whole[place] for place in places]
        rows = torch.tensor([entities.stop + place for place in places], dtype=torch.long)
        x, output = self._model.x, self._model.output
        layers = {"input": (x.weight, x.entity), "output": (output.weight, self._model.y_entity)}
        unseen = range(entities.start, entities.stop), self._model.config.context_dim
        return {name: Space(layer, words, rows, unseen) for name, layer in layers.items()}

    @cached_property
    def _saying(self) -> frozenset[int]:
        return frozenset(map(self._vocabulary.row, _SAYING)) - {UNK}

    def own_words(self, sentence: Sequence[int], slot: int) -> frozenset[int]:
        """The rows of a sentence that its entity in this slot is not."""
        row = row_of_entity(slot)
        for place in (place for place, found in enumerate(sentence) if found == row):
            if self._saying.intersection(sentence[max(place - _REACH, 0) : place + _REACH + 1]):
                return frozenset()
        return frozenset(sentence)

    def vectors(
        self, slots: Sequence[int], d: Float[Tensor, "mentions context_dim"]
    ) -> Float[Tensor, "mentions dim"]:
        """What predicted words are compared with: g_e if there is one, else centered x_e or y_e."""
        d = d.to(self._model.x.weight)
        if self._naming is not None:
            return self._naming.named(d)
        space = self.spaces[self.naming_space]
        return space.embeddings(slots, d) - space.mean

    def describe(
        self,
        entities: Sequence[EntityReading],
        d: Float[Tensor, "mentions context_dim"],
        evidence: Sequence[Evidence] = (),
    ) -> list[EntityReading]:
        """Add the words of each entity, given its d."""
        states = {
            name: space.embeddings([entity.row for entity in entities], d)
            for name, space in self.spaces.items()
        }
        if self._naming is not None:
            states[self.naming_space] = self._naming.named(d)
        by = {name: space.near(states[name]) for name, space in self.spaces.items()}
        near, cosine = by[self.naming_space]
        logits = near * _UNTRAINED_SCALE
        if self._naming is not None:
            mentions = torch.tensor([entity.occurrence for entity in entities])
            logits = cosine * self._naming.scale(mentions).detach().float().unsqueeze(1)
        elif isinstance(self._model.core, PretrainedCore):
            logits = self._expected(self._model.core, evidence)
        else:
            evidence = ()
        for entity, known in enumerate(evidence):
            own_words = torch.tensor([*known.own_words], dtype=torch.long)
            logits[entity, torch.isin(self.spaces[self.naming_space].rows, own_words)] = -torch.inf
        p = logits.softmax(1)

        def words(name: str, ranked: Tensor) -> list[list[Neighbor]]:
            return self.spaces[name].best(states[name], ranked, p, min(self._k, p.shape[1]))

        predicted_words = words(self.naming_space, p)
        if self._model.config.variant == "baseline" and not self._model.config.is_pretrained:
            predicted_words = [[] for _ in entities]
        ranked = {name: near for name, (near, _) in by.items()}
        if self._naming is not None:
            ranked[self.naming_space] = p
        near_words = (words(name, ranked[name]) for name in ("input", "output"))
        described = []
        for entity, predicted, x, y in zip(entities, predicted_words, *near_words, strict=True):
            confidence = None
            if self._naming is not None and predicted:
                confidence = sum(word.probability for word in predicted[:SHOWN])
            words_of = {"predicted_words": predicted, "input_words": x, "output_words": y}
            described.append(replace(entity, confidence=confidence, **words_of))
        return described

    def _expected(
        self, core: PretrainedCore, evidence: Sequence[Evidence]
    ) -> Float[Tensor, "entities words"]:
        """The logits of words that a pretrained core expects in place of each entity."""
        weight, b = self._model.output.weight, self._model.output.b
        rows = self.spaces["output"].rows
        h = torch.stack([known.expected / known.mentions for known in evidence])
        h -= core.base.typical_state.to(h) / 2
        return h @ weight[rows].t() + b[rows] / 2


class Space:
    """The embeddings of one layer: the content words, and their similarity to any entity."""

    def __init__(
        self,
        layer: tuple[Float[Tensor, "vocabulary dim"], Callable[[Tensor, Tensor], Tensor]],
        words: Sequence[str],
        rows: Int[Tensor, " words"],
        unseen: tuple[Sequence[int], int],
    ) -> None:
        """`unseen` are the rows of entities and the size of their d."""
        self._weight, self._of_entity = layer
        weight = self._weight
        self.rows = rows
        self.listed = words
        vectors = weight.index_select(0, rows)
        self.mean = vectors.mean(0) if len(words) else weight.mean(0)
        centered = vectors - self.mean
        lengths = centered.norm(dim=1).clamp_min(_LEAST)
        zeros = weight.new_zeros(len(unseen[0]), unseen[1])
        unread = _unit(self._of_entity(torch.tensor(unseen[0]), zeros) - self.mean).mean(0)
        self.unread = centered @ unread / lengths
        """The mean similarity of each word to entities not yet mentioned."""
        # Single precision finds the words; their values are computed in double precision.
        self._vectors = vectors.float()
        self._lengths = vectors.norm(dim=1).clamp_min(_LEAST).float()
        self._centered_lengths, self._unread = lengths.float(), self.unread.float()
        self._with_mean = (vectors @ self.mean).float()

    def embeddings(
        self, slots: Sequence[int], d: Float[Tensor, "mentions context_dim"]
    ) -> Float[Tensor, "mentions dim"]:
        """Eq. 9 or 10 for the entities in these slots in the states d."""
        rows = torch.tensor([row_of_entity(slot) for slot in slots], dtype=torch.long)
        return self._of_entity(rows, d)

    def near(
        self, states: Float[Tensor, "states dim"]
    ) -> tuple[Float[Tensor, "states words"], Float[Tensor, "states words"]]:
        """`near` and the cosine of embeddings to every word, from one matrix product."""
        dot = states.float() @ self._vectors.t()
        lengths = states.norm(dim=1, keepdim=True).clamp_min(_LEAST).float()
        cosine = dot.div(lengths).div_(self._lengths)
        offset = (states @ self.mean - self.mean @ self.mean).float().unsqueeze(1)
        lengths = (states - self.mean).norm(dim=1, keepdim=True).clamp_min(_LEAST).float()
        centered = dot.sub_(self._with_mean).sub_(offset).div_(lengths)
        return centered.div_(self._centered_lengths).sub_(self._unread), cosine

    def best(
        self,
        states: Float[Tensor, "mentions dim"],
        by: Float[Tensor, "mentions words"],
        probability: Float[Tensor, "mentions words"],
        k: int,
    ) -> list[list[Neighbor]]:
        """The k words that rank highest for each of these embeddings."""
        numbers = by.topk(k, dim=1).indices
        vectors = nn.functional.embedding(self.rows[numbers], self._weight)
        near = torch.einsum("mkd,md->mk", _unit(vectors - self.mean), _unit(states - self.mean))
        columns = (numbers, near - self.unread[numbers], probability.gather(1, numbers))
        return [
            [
                Neighbor(word=self.listed[n], similarity=near, probability=p)
                for n, near, p in zip(*row, strict=True)
                if p
            ]
            for row in zip(*(column.tolist() for column in columns), strict=True)
        ]


def _unit(vectors: Float[Tensor, "*shape dim"]) -> Float[Tensor, "*shape dim"]:
    return nn.functional.normalize(vectors, dim=-1)
