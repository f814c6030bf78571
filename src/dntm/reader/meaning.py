"""Meaning: what an entity is taken for (Eq. 9), and the words it stands near to (Eqs. 9 and 10).

    p(w | e)   = softmax_w(s cos(g_e, x_w) + log(rank_w) / 2)               taken for
    near(e, w) = cos(x_e - m, x_w - m) - mean_k cos(b_k - m, x_w - m)       nearest words

g_e is x_e and, with less weight, what the sentences speak of that mention e (`evaluation.topic`).
Both are over the content words of the vocabulary alone: an unknown word is never taken for one of
`function_words.txt`, for a number or for a letter. s is what a model has learned that was trained
to name hidden words (`model.naming`). Such a model expects frequent words, as it should where it is
asked which word was hidden; an unknown word is no frequent one. So half of what frequency alone
says is taken off: by Zipf's law log p(w) is -log(rank_w), and rows stand in order of frequency. The
nearest input words of such a model are those of p. Others have not learned to name: p is then made
of `near` with s = 10, which orders words and says nothing about certainty.

`near` corrects for frequency too. Embeddings share one large direction, so the mean m over the
words is taken off; and a word near to every entity, whatever was read, says nothing, so that its
mean nearness to the entities of which nothing has been read (their own rows b_k) is taken off, too.
These are states that every model has; in 270 states of 22 texts, five nearest words each, 71
different words instead of 42 were found that way, of mean frequency rank 238 instead of 60. Means
over states of other texts correct too much: adverbs such as "vainly" win.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import islice

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import Vocabulary, entity_rows, row_of_entity
from dntm.evaluation.topic import Topic, with_topic
from dntm.model.dynamic_embedding import DynamicEmbedding
from dntm.model.language_model import DynamicTextModel
from dntm.reader.reading import Neighbour

COMPARED = 10_000
"""With so many words entities are compared, the most frequent: rarer ones would explain nothing."""
SHOWN = 3
"""How many words an entity is said to be taken for: `sure` is the sum of their probabilities."""
RARITY = 0.5
"""How much of log p(w) is taken off the logit of a word."""
_OFTEN = 20
"""The most frequent words are all alike in this: so much is added to their rank."""
_UNTRAINED_SCALE = 10.0
_BLOCK = 64
_LEAST = 1e-12
SURE = {"surely": 0.6, "probably": 0.3, "perhaps": 0.1, "a wild guess": 0.0}
"""What is said of a probability, and the least one of which it is said."""


def how_sure(probability: float | None) -> str:
    """A probability in words; nothing where the model has not learned to name."""
    if probability is None:
        return ""
    return next(phrase for phrase, least in SURE.items() if probability >= least)


def content_words(words: Sequence[str]) -> Iterator[int]:
    """The places of those that name something, each word once: `Old` is the same as `old`."""
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


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an entity means after a sentence, and what the sentence changed."""

    taken_for: Sequence[Neighbour]
    sure: float | None
    input_words: Sequence[Neighbour]
    output_words: Sequence[Neighbour]
    gained: Sequence[Neighbour]
    lost: Sequence[Neighbour]
    change: float
    """How far d moved."""


class Meanings:
    """Finds what entities are taken for, and the words near to them."""

    def __init__(self, model: DynamicTextModel, vocabulary: Vocabulary, k: int = 8) -> None:
        self._model = model
        self._vocabulary = vocabulary
        self._k = k
        self.changing = "input" if model.config.dynamic_input else "output"
        """The space in which entities are named; in it words become likelier or less likely."""
        self._topic: Topic | None = None
        naming = getattr(model, "naming", None)
        self._s = None if naming is None or self.changing != "input" else float(naming.s.detach())

    @cached_property
    def spaces(self) -> Mapping[str, "Space"]:
        """The input and the output layer; made when first asked for, since scores need neither."""
        entities = entity_rows(self._vocabulary.entities)
        places = list(islice(content_words(self._vocabulary.words), COMPARED))
        words = [self._vocabulary.words[place] for place in places]
        rows = torch.tensor([entities.stop + place for place in places], dtype=torch.long)
        rarity = RARITY * torch.tensor([place + _OFTEN for place in places]).float().log()
        layers = {"input": self._model.x, "output": self._model.output.y}
        return {name: Space(layer, words, rows, entities, rarity) for name, layer in layers.items()}

    def topic(self, sentence: Sequence[int]) -> Float[Tensor, " dim"]:
        """What a sentence, as rows of the vocabulary, speaks of."""
        if self._topic is None:
            self._topic = Topic(self._model.x.weight, self._vocabulary.entities)
        return self._topic.of(sentence)

    def of(
        self,
        entities: Sequence[int],
        before: Float[Tensor, "mentions context_dim"],
        after: Float[Tensor, "mentions context_dim"],
        topics: Sequence[Float[Tensor, "mentions dim"]] = (),
    ) -> list[Meaning]:
        """What each of these entities means once its d has gone from `before` to `after`.

        `topics` are those of the sentences that mention it, before and after.
        """
        moves = {}
        for name, space in self.spaces.items():
            states = [space.embeddings(entities, d) for d in (before, after)]
            if self._s is not None and name == self.changing and topics:
                states = [with_topic(x_e, c_e) for x_e, c_e in zip(states, topics, strict=True)]
            moves[name] = _Move(space, *states)
        naming = moves[self.changing]
        then, now = naming.probabilities(self._s)
        named = naming.near if self._s is None else now
        near = {name: named if move is naming else move.space.near(move.after)[0]
                for name, move in moves.items()}  # fmt: skip
        k = min(self._k, now.shape[1])
        lists = [
            naming.words(now, now, k if self._model.config.variant != "baseline" else 0),
            *(moves[name].words(near[name], now, k) for name in ("input", "output")),
            naming.words(now - then, now, k, above=0.0),
            naming.words(then - now, now, k, above=0.0),
        ]
        moved = (after - before).norm(dim=1).tolist()
        return [
            Meaning(taken, self._sure(taken), near_x, near_y, gained, lost, change)
            for taken, near_x, near_y, gained, lost, change in zip(*lists, moved, strict=True)
        ]

    @torch.no_grad()
    def tried(
        self, g_e: Float[Tensor, "mentions dim"], words: Sequence[str]
    ) -> list[tuple[str, bool]]:
        """For entities that stand for these words: how sure is said, and whether the word is shown.

        Nothing where the model has not learned to name.
        """
        if self._s is None:
            return []
        space = self.spaces[self.changing]
        likely = (space.near(g_e)[1] * self._s + space.rarity).softmax(1)
        values, numbers = highest(likely, min(SHOWN, likely.shape[1]))
        shown = [[space.listed[number] for number in row] for row in numbers.tolist()]
        sure = values.sum(1).tolist()
        return [(how_sure(p), w in s) for p, w, s in zip(sure, words, shown, strict=True)]

    def _sure(self, taken_for: Sequence[Neighbour]) -> float | None:
        if self._s is None or not taken_for:
            return None
        return sum(word.probability for word in taken_for[:SHOWN])


class Space:
    """One layer's embeddings: the words compared with, and what is near to any entity."""

    def __init__(
        self,
        layer: DynamicEmbedding,
        words: Sequence[str],
        rows: Int[Tensor, " words"],
        entities: slice,
        rarity: Float[Tensor, " words"],
    ) -> None:
        self.rarity = rarity
        """What is added to each word's logit because it is rare."""
        self._layer = layer
        self._rows = rows
        self.listed = words
        self._numbers = {word: number for number, word in enumerate(words)}
        vectors = layer.weight.index_select(0, rows)
        self.mean = vectors.mean(0) if len(words) else layer.weight.mean(0)
        centred = vectors - self.mean
        lengths = centred.norm(dim=1).clamp_min(_LEAST)
        unread = _unit(layer.weight[entities] - self.mean).mean(0)
        self.anyway = centred @ unread / lengths
        """How near each word is to entities of which nothing has been read."""
        # Single precision finds the words; what is said of them is computed in double.
        self._vectors = vectors.float()
        self._lengths = vectors.norm(dim=1).clamp_min(_LEAST).float()
        self._centred_lengths, self._anyway = lengths.float(), self.anyway.float()
        self._with_mean = (vectors @ self.mean).float()

    def words(self, words: Sequence[str]) -> Float[Tensor, "words dim"]:
        """The vectors of some of the words compared with, centred, at unit length."""
        return self.at(torch.tensor([self._numbers[word] for word in words], dtype=torch.long))

    def at(self, numbers: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape dim"]:
        """The same of words by their numbers."""
        return _unit(nn.functional.embedding(self._rows[numbers], self._layer.weight) - self.mean)

    def entities(
        self, entities: Sequence[int], d: Float[Tensor, "mentions context_dim"]
    ) -> Float[Tensor, "mentions dim"]:
        """The vectors of these entities in the states d, centred, at unit length."""
        return _unit(self.embeddings(entities, d) - self.mean)

    def embeddings(
        self, entities: Sequence[int], d: Float[Tensor, "mentions context_dim"]
    ) -> Float[Tensor, "mentions dim"]:
        """Eq. 9 or 10 for these entities in the states d."""
        rows = torch.tensor([row_of_entity(e) for e in entities], dtype=torch.long)
        return self._layer.entity(rows, d)

    def near(
        self, states: Float[Tensor, "states dim"]
    ) -> tuple[Float[Tensor, "states words"], Float[Tensor, "states words"]]:
        """Nearness and plain cosine of these embeddings to every word, from one matrix product."""
        dot = states.float() @ self._vectors.t()
        lengths = states.norm(dim=1, keepdim=True).clamp_min(_LEAST).float()
        cosine = dot.div(lengths).div_(self._lengths)
        offset = (states @ self.mean - self.mean @ self.mean).float().unsqueeze(1)
        lengths = (states - self.mean).norm(dim=1, keepdim=True).clamp_min(_LEAST).float()
        centred = dot.sub_(self._with_mean).sub_(offset).div_(lengths)
        return centred.div_(self._centred_lengths).sub_(self._anyway), cosine


class _Move:
    """Where in a space entities stood before a sentence, and where they stand after it."""

    def __init__(
        self,
        space: Space,
        before: Float[Tensor, "mentions dim"],
        after: Float[Tensor, "mentions dim"],
    ) -> None:
        self.space = space
        self.after = after
        self._before = before

    def probabilities(self, s: float | None) -> tuple[Tensor, Tensor]:
        """p(w | e), before and after; without a learned scale made of the nearness."""
        # What an entity is before a sentence it mostly was after an earlier one.
        both = torch.cat((self._before, self.after))
        states, where = torch.unique(both, dim=0, return_inverse=True)
        near, cosine = self.space.near(states)
        likely = (near * _UNTRAINED_SCALE if s is None else cosine * s + self.space.rarity).softmax(
            1
        )
        then, now = where.chunk(2)
        self.near = near[now]
        return likely[then], likely[now]

    def words(
        self, by: Tensor, probability: Tensor, k: int, above: float = -math.inf
    ) -> list[list[Neighbour]]:
        """The k words that rank highest for each entity, as far as they stand above a bound."""
        values, numbers = highest(by, k)
        vectors, anyway = self.space.at(numbers), self.space.anyway[numbers]
        then, now = (
            torch.einsum("mkd,md->mk", vectors, _unit(state - self.space.mean)) - anyway
            for state in (self._before, self.after)
        )
        columns = (values, numbers, now, now - then, probability.gather(1, numbers))
        return [
            [
                Neighbour(
                    word=self.space.listed[number],
                    similarity=similarity,
                    change=change,
                    probability=likely,
                )
                for value, number, similarity, change, likely in zip(*row, strict=True)
                if value > above
            ]
            for row in zip(*(column.tolist() for column in columns), strict=True)
        ]


def highest(
    values: Float[Tensor, "rows columns"], k: int
) -> tuple[Float[Tensor, "rows k"], Int[Tensor, "rows k"]]:
    """As topk, but quick: the k highest stand in the k blocks whose maxima are highest."""
    blocks = nn.functional.pad(values, (0, -values.shape[1] % _BLOCK), value=-math.inf)
    blocks = blocks.view(len(values), -1, _BLOCK)
    if blocks.shape[1] <= k:
        return values.topk(k, dim=1)
    chosen = blocks.amax(2).topk(k, dim=1).indices
    inside = blocks.gather(1, chosen.unsqueeze(2).expand(-1, -1, _BLOCK)).flatten(1)
    found = inside.topk(k, dim=1)
    block = chosen.gather(1, found.indices.div(_BLOCK, rounding_mode="floor"))
    return found.values, block * _BLOCK + found.indices % _BLOCK


def _unit(vectors: Float[Tensor, "*shape dim"]) -> Float[Tensor, "*shape dim"]:
    return nn.functional.normalize(vectors, dim=-1)
