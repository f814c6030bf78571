"""SentenceCompletion: word embeddings and context encoder learned by filling gaps (Section 5.1).

Each word of a sentence is hidden in turn. The encoder's context vector of the gap is compared with
the embedding of the hidden word and with those of random words:

    x_hat_e = ReLU(W_hd [h_fwd_{t-1}; h_bwd_{t+1}] + b_d)                          Eq. 6
    loss    = -log sigma(x_hat_e . x_e) - sum over negatives v log sigma(-x_hat_e . x_v)

One pass of each direction over a sentence gives the contexts of all its words. At the optimum,
x_hat . x_w + log q(w) is log p(w | gap) up to a constant, where q is the distribution of the
negatives.

Beyond the paper, `GapNaming` names the hidden word with the loss of `extensions.naming`. It learns
x_e = W_dx d + b (Eq. 9), which initializes the language model.

Departure: <unk> is hidden and drawn like any other word; the paper does not mention it. Entities
start as <unk>, so its row must be trained.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import BOS, EOS, UNK
from dntm.model.config import Merging
from dntm.model.context_encoder import ContextEncoder, SentenceWords, around
from dntm.model.extensions.naming import Naming
from dntm.model.fast.layout import Segment, indices, lay_out_ragged
from dntm.model.merging import merging_function

LENGTH_COST = 0.1
"""Nats per word if x_hat is on average twice as long as word embeddings. Cosines do not depend on
the length, but the encoder reads x_e among words."""


@dataclass(frozen=True, slots=True)
class GapLayout:
    """The words of a batch, time step by time step, the longest sentence first."""

    segments: tuple[Segment, ...]
    before: Int[np.ndarray, " words"]
    """Rows that the forward LSTM reads: at each word's place, the token before it."""
    after: Int[np.ndarray, " words"]
    """Rows that the backward LSTM reads, from the end of each sentence."""
    mirror: Int[np.ndarray, " words"]
    """For each place, where the backward LSTM has read everything after its word."""
    reading: Int[np.ndarray, " words"]
    """For each place, the index of its word in reading order through the batch."""


def lay_out_gaps(sentences: Sequence[Int[np.ndarray, " _"]]) -> GapLayout:
    """Lay out sentences of at least one word."""
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    ragged = lay_out_ragged(lengths)
    first = np.cumsum(lengths) - lengths
    words = np.concatenate(sentences)
    here = first[ragged.sequence] + ragged.time
    end = (first + lengths - 1)[ragged.sequence]
    starts_at = ragged.time == 0
    before = np.where(starts_at, BOS, words[here - ~starts_at])
    after = np.where(starts_at, EOS, words[np.minimum(end - ragged.time + 1, end)])
    remaining = lengths[ragged.sequence] - 1 - ragged.time
    mirror = ragged.starts[remaining] + ragged.rank[ragged.sequence]
    segments = tuple(Segment(len(list(steps)), width) for width, steps in groupby(ragged.widths))
    return GapLayout(segments, before, after, mirror, here)


class SentenceCompletion(nn.Module):
    """One table of embeddings and a ContextEncoder over it."""

    merges: Merging | None = None
    """The name of the merging function."""

    def __init__(
        self, rows: int, encoder: ContextEncoder, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        embedding_dim = encoder.forward_lstm.W_ih.shape[1]
        self.x, self.encoder = nn.Parameter(torch.empty(rows, embedding_dim)), encoder
        nn.init.normal_(self.x, std=embedding_dim**-0.5, generator=generator)
        encoder.reset_parameters(generator)

    def compared(self) -> Float[Tensor, "vocabulary embedding_dim"]:
        """The matrix to multiply `contexts` with to rank words."""
        return self.x.detach()

    def forward(
        self,
        sentences: Sequence[Int[np.ndarray, " _"]],
        negatives: Int[np.ndarray, "words negatives"],
    ) -> Float[Tensor, ""]:
        """The loss summed over all words; zero, with gradients, if there are none."""
        if not sentences:
            return sum((p.sum() * 0 for p in self.parameters()), start=self.x.new_zeros(()))
        layout = lay_out_gaps(sentences)
        words = np.concatenate(sentences)
        labels = np.concatenate((words[:, None], negatives), 1)[layout.reading]
        rows = np.concatenate((layout.before, layout.after, labels.ravel()))
        looked_up = nn.functional.embedding(indices(rows, self.x), self.x)
        count = len(words)
        before, after, candidates = torch.split(looked_up, [count, count, labels.size])
        x_hat = self._contexts(layout, sentences, before, after)
        logits = torch.bmm(candidates.view(count, -1, x_hat.shape[1]), x_hat.unsqueeze(2))
        # -log sigma(z) = softplus(-z); the hidden word comes first.
        sign = torch.ones_like(logits)
        sign[:, 0] = -1
        return nn.functional.softplus(sign * logits).sum()

    @torch.no_grad()
    def contexts(
        self, sentences: Sequence[Int[np.ndarray, " _"]]
    ) -> Float[Tensor, "words embedding_dim"]:
        """The context vector of each word's gap, in reading order."""
        layout = lay_out_gaps(sentences)
        x_hat = self._contexts(layout, sentences, *self._around(layout))
        return torch.empty_like(x_hat).index_copy_(0, indices(layout.reading, self.x), x_hat)

    def _contexts(
        self,
        layout: GapLayout,
        sentences: Sequence[Int[np.ndarray, " _"]],
        before: Float[Tensor, "words embedding_dim"],
        after: Float[Tensor, "words embedding_dim"],
    ) -> Float[Tensor, "words context_dim"]:
        words = partial(self._sentence_words, sentences, layout.reading)
        return self.encoder.contexts(*self._read(layout, before, after), words)

    def _sentence_words(
        self, sentences: Sequence[Int[np.ndarray, " _"]], gaps: Int[np.ndarray, " gaps"]
    ) -> SentenceWords:
        """The sentences of these gaps, which are counted in reading order through the words."""
        words, lengths = np.concatenate(sentences), np.array([len(s) for s in sentences])
        starts = np.cumsum(lengths) - lengths
        sentence = np.searchsorted(starts, gaps, side="right") - 1
        position = gaps - starts[sentence]
        time, seen = around(position, lengths[sentence])
        here = np.minimum(starts[sentence, None] + time, len(words) - 1)
        rows = np.where(seen, words[here], UNK)
        rows[rows >= len(self.x)] = UNK
        x = nn.functional.embedding(indices(rows, self.x), self.x)
        return SentenceWords(rows, x, np.abs(time - position[:, None]))

    def _read(
        self,
        layout: GapLayout,
        before: Float[Tensor, "words embedding_dim"],
        after: Float[Tensor, "words embedding_dim"],
    ) -> tuple[Float[Tensor, "words encoder_dim"], Float[Tensor, "words encoder_dim"]]:
        encoder = self.encoder
        zero = before.new_zeros(layout.segments[0].width, encoder.forward_lstm.W_hh.shape[1])
        h_forward, _, _ = encoder.forward_lstm.carry(before, layout.segments, zero, zero)
        h_backward, _, _ = encoder.backward_lstm.carry(after, layout.segments, zero, zero)
        return h_forward, h_backward.index_select(0, indices(layout.mirror, self.x))

    def _around(self, layout: GapLayout) -> tuple[Tensor, ...]:
        rows = indices(np.concatenate((layout.before, layout.after)), self.x)
        return torch.split(nn.functional.embedding(rows, self.x), len(layout.before))


class GapNaming(SentenceCompletion):
    """Gaps named by s cos(W_dx d + b, x_w).

    Without a merging function d is the gap's own context d'. With one, the gaps of a word follow
    each other (`training.batches.WordsByType`), and d is merged from its contexts so far.
    """

    def __init__(
        self,
        rows: int,
        encoder: ContextEncoder,
        generator: torch.Generator | None = None,
        merging: Merging | None = None,
    ) -> None:
        super().__init__(rows, encoder, generator)
        self.merges, self.merging = merging, None
        embedding_dim, context_dim = self.x.shape[1], encoder.W_hd.shape[0]
        self.W_dx = nn.Parameter(torch.empty(embedding_dim, context_dim))
        self.b = nn.Parameter(torch.zeros(embedding_dim))
        self.naming = Naming()
        nn.init.xavier_uniform_(self.W_dx, generator=generator)
        if merging is not None:
            self.merging = merging_function(merging, context_dim)
            self.merging.reset_parameters(generator)

    def forward(  # type: ignore[override]
        self,
        sentences: Sequence[Int[np.ndarray, " _"]],
        named: Bool[np.ndarray, " words"],
        candidates: Int[np.ndarray, " candidates"],
        log_included: Float[np.ndarray, " candidates"],
        hidden: Bool[np.ndarray, " words"],
    ) -> Float[Tensor, ""]:
        """The loss summed over the named words; zero, with gradients, if there are none.

        Candidates are rising rows that include every named word; `log_included` as in
        `Naming.loss`. Words marked `hidden` are read as unseen entities (b).
        """
        if not named.any():
            return sum((p.sum() * 0 for p in self.parameters()), start=self.x.new_zeros(()))
        words = np.concatenate(sentences)
        # The row after the last one stands for b.
        read = np.where(hidden, len(self.x), words)
        texts = np.split(read, np.cumsum([len(s) for s in sentences])[:-1])
        layout = lay_out_gaps(texts)
        h_forward, h_backward = self._read(layout, *self._around(layout))
        at, answers = indices(np.argsort(layout.reading)[named], self.x), words[named]
        d = self.encoder.contexts(
            h_forward.index_select(0, at),
            h_backward.index_select(0, at),
            partial(self._sentence_words, texts, np.nonzero(named)[0]),
        )
        nth = np.zeros_like(answers)
        if self.merging is not None:
            nth = np.arange(len(answers)) - np.searchsorted(answers, answers)
            d = self._merged(d, nth)
        x_hat = self._name(d)
        length: Tensor = x_hat.norm(dim=1).mean() / self.x.detach().norm(dim=1).mean()
        nats = self.naming.loss(
            x_hat,
            nn.functional.embedding(indices(candidates, self.x), self.x),
            indices(np.searchsorted(candidates, answers), self.x),
            torch.from_numpy(log_included).to(self.x.device),
            indices(nth + 1, self.x),
        )
        return nats + len(answers) * LENGTH_COST * (length - 1).square()

    def compared(self) -> Float[Tensor, "vocabulary embedding_dim"]:
        """The matrix to multiply `contexts` with to rank words: x_w of length 1."""
        return nn.functional.normalize(self.x.detach(), dim=1)

    @torch.no_grad()
    def contexts(
        self, sentences: Sequence[Int[np.ndarray, " _"]]
    ) -> Float[Tensor, "words embedding_dim"]:
        """The x_e that each gap's own context gives, of length s_1."""
        x_hat = self._name(super().contexts(sentences))
        first = torch.ones(1, dtype=torch.long, device=x_hat.device)
        return self.naming.scale(first) * nn.functional.normalize(x_hat, dim=1)

    def _name(self, d: Float[Tensor, "gaps context_dim"]) -> Float[Tensor, "gaps embedding_dim"]:
        return torch.addmm(self.b, d, self.W_dx.t())

    def _merged(
        self, contexts: Float[Tensor, "gaps context_dim"], nth: Int[np.ndarray, " gaps"]
    ) -> Float[Tensor, "gaps context_dim"]:
        """For each gap, d merged from the contexts of its word so far; `nth` counts them from 0."""
        assert self.merging is not None
        merger = self.merging.bind()
        inputs = merger.inputs(contexts)
        states = self.merging.initial(contexts).expand(len(nth), -1)
        for n in range(int(nth.max()) + 1):
            gaps = np.flatnonzero(nth == n)
            # The gap before it is of the same word.
            previous = states.index_select(0, indices(gaps - (n > 0), self.x))
            at = indices(gaps, self.x)
            states = states.index_copy(0, at, merger.merge(inputs.index_select(0, at), previous))
        return states[:, : contexts.shape[1]]

    def _around(self, layout: GapLayout) -> tuple[Tensor, ...]:
        rows = indices(np.concatenate((layout.before, layout.after)), self.x)
        met = (rows < len(self.x)).unsqueeze(1)
        x = nn.functional.embedding(rows.clamp(max=len(self.x) - 1), self.x)
        return torch.split(torch.where(met, x, self.b), len(layout.before))
