"""BagOfContext: the encoder's baseline, which knows a gap's words but not their order.

    x_hat_e = W mean over the other words c of the sentence of x_c + b

W and b are fitted with the objective of pretraining on the same text, with the negatives of the
run; the embeddings are the encoder's and stay as they are. So it says what the order of the words
is worth once these embeddings are there, not how far a bag of words would come with its own.

Its 2,000 updates take some two minutes of one core (256 units); nothing of it is stored.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.corpus.token_store import TokenStore
from dntm.training.batches import Negatives, SentenceBatches, sentence_batch

ITERATIONS, BATCH, NEGATIVES, LEARNING_RATE = 2000, 128, 5, 3e-3


class BagOfContext(nn.Module):
    """A linear map of the mean of the words around a gap."""

    def __init__(self, x: Float[Tensor, "vocabulary dim"]) -> None:
        super().__init__()
        dim = x.shape[1]
        self.x = x
        self.W = nn.Parameter(torch.eye(dim))
        self.b = nn.Parameter(torch.zeros(dim))

    def contexts(self, sentences: Sequence[Int[np.ndarray, " _"]]) -> Float[Tensor, "words dim"]:
        """The x_hat of every word's gap, in reading order; of a sentence's only word, b."""
        lengths = torch.tensor([len(sentence) for sentence in sentences])
        words = self.x.index_select(0, torch.from_numpy(np.concatenate(sentences)))
        which = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        total = words.new_zeros(len(lengths), words.shape[1]).index_add_(0, which, words)
        others = (lengths - 1).clamp(min=1)[which].unsqueeze(1)
        mean = (total.index_select(0, which) - words) / others
        return torch.addmm(self.b, mean, self.W.t())


def fit_bag(
    x: Float[Tensor, "vocabulary dim"],
    store: TokenStore,
    share: Float[Tensor, " vocabulary"],
    *,
    seed: int = 1,
) -> BagOfContext:
    """Fit the baseline to the sentences that pretraining learned from.

    `share` says how likely each row was to be a negative sample there.
    """
    bag = BagOfContext(x)
    adam = torch.optim.Adam(bag.parameters(), lr=LEARNING_RATE)
    negatives = Negatives(share.numpy().astype(np.float64))
    batches = SentenceBatches(store, BATCH, seed=seed).numbers()
    random = np.random.default_rng(seed)
    for done, numbers in zip(range(ITERATIONS), batches, strict=False):
        batch = sentence_batch(store, numbers, negatives, NEGATIVES, random)
        x_hat = bag.contexts(batch.sentences)
        words = np.concatenate(batch.sentences)[:, None]
        rows = torch.from_numpy(np.concatenate((words, batch.negatives), 1))
        logits = torch.einsum("wnd,wd->wn", nn.functional.embedding(rows, x), x_hat)
        sign = torch.ones(1 + NEGATIVES)
        sign[0] = -1
        adam.zero_grad()
        (nn.functional.softplus(sign * logits).sum() / batch.words).backward()  # type: ignore[no-untyped-call]
        for group in adam.param_groups:
            group["lr"] = LEARNING_RATE * (1 - done / ITERATIONS)
        adam.step()
    return bag.requires_grad_(requires_grad=False)
