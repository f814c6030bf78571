import numpy as np
import pytest
import torch
from torch import Tensor

from dntm.corpus.vocabulary import BOS, EOS
from dntm.model.config import Merging
from dntm.model.context_encoder import ContextEncoder
from dntm.model.extensions.naming import MENTIONS
from dntm.model.reference import Reference
from dntm.model.sentence_completion import LENGTH_COST, GapNaming, SentenceCompletion
from tests.model.small import configure

SENTENCES = [np.array([4, 7, 5]), np.array([6]), np.array([3, 3, 8, 9, 4]), np.array([5, 6, 7])]
NEGATIVES = np.random.default_rng(1).integers(3, 10, (12, 2))


def model() -> SentenceCompletion:
    generator = torch.Generator().manual_seed(3)
    return SentenceCompletion(10, ContextEncoder(6, 4, 6), generator).double()


def context(
    m: SentenceCompletion, sentence: list[int], gap: int, x: Tensor | None = None
) -> Tensor:
    """Eqs. 6 to 8 for one gap."""
    x = m.x if x is None else x
    reference = Reference(configure(encoder_dim=4), dict(m.named_parameters()))
    rows = (BOS, *sentence, EOS)
    return reference.context([x[row] for row in rows], rows, gap + 1)


def test_contexts_and_loss_follow_the_equations_word_by_word() -> None:
    m = model()
    expected, loss = [], torch.zeros((), dtype=torch.float64)
    negatives = iter(NEGATIVES.tolist())
    for sentence in SENTENCES:
        for gap, word in enumerate(sentence.tolist()):
            x_hat = context(m, sentence.tolist(), gap)
            expected.append(x_hat)
            loss = loss - torch.sigmoid(x_hat @ m.x[word]).log()
            for other in next(negatives):
                loss = loss - torch.sigmoid(-(x_hat @ m.x[other])).log()

    found = m(SENTENCES, NEGATIVES)

    torch.testing.assert_close(m.contexts(SENTENCES), torch.stack(expected).detach())
    torch.testing.assert_close(found, loss, rtol=1e-9, atol=1e-9)
    ours = torch.autograd.grad(found, list(m.parameters()))
    theirs = torch.autograd.grad(loss, list(m.parameters()))
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("merging", ["attention", "gru-relu", None])
def test_a_word_named_again_is_named_from_all_its_contexts_so_far(merging: Merging | None) -> None:
    m = GapNaming(10, ContextEncoder(6, 4, 5), merging=merging).double()
    for parameter in m.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=torch.Generator().manual_seed(8))
    # Words drawn by type: 3 has one sentence, 4 and 7 have two.
    sentences = [SENTENCES[i] for i in (2, 0, 2, 0, 3)]
    words, named = np.concatenate(sentences), np.zeros(19, bool)
    named[[0, 5, 12, 14, 18]] = True
    hidden, candidates = np.arange(len(words)) % 4 == 1, np.unique(words)
    to_name = iter(named.tolist())

    guesses: list[Tensor] = []
    scales: list[Tensor] = []
    seen: dict[int, int] = {}
    states: dict[int, Tensor] = {}
    table, at = torch.cat((m.x, m.b.unsqueeze(0))), iter(np.where(hidden, 10, words).tolist())
    for sentence in sentences:
        reads = [next(at) for _ in sentence]
        for gap, word in enumerate(sentence.tolist()):
            if not next(to_name):
                continue
            d = context(m, reads, gap, table)
            if m.merging is not None:
                before = states.get(word, m.merging.initial(d))
                merger = m.merging.bind()
                states[word] = merger.merge(merger.inputs(d[None]), before[None])[0]
                d = states[word][:5]
            seen[word] = seen.get(word, 0) + 1 if m.merging is not None else 1
            scales.append(m.naming.s * m.naming.t[min(seen[word], MENTIONS) - 1].exp())
            guesses.append(m.W_dx @ d + m.b)
    x_hat = torch.stack(guesses)
    cosines = torch.cosine_similarity(x_hat[:, None], m.x[candidates][None], dim=2)
    logits = torch.stack(scales)[:, None] * cosines
    right = torch.from_numpy(np.searchsorted(candidates, words[named]))
    length = x_hat.norm(dim=1).mean() / m.x.norm(dim=1).mean().detach()
    expected = -logits.log_softmax(1).gather(1, right[:, None]).sum()
    expected = expected + len(guesses) * LENGTH_COST * (length - 1) ** 2

    nothing = np.zeros(len(candidates))
    found = m(sentences, named, candidates, nothing, hidden)

    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    learned = list(m.parameters())
    ours = torch.autograd.grad(found, learned)
    for mine, other in zip(ours, torch.autograd.grad(expected, learned), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-7, atol=1e-9)


def test_without_sentences_loss_and_gradients_are_zero() -> None:
    m = model()

    loss = m([], NEGATIVES[:0])
    loss.backward()

    assert loss.item() == 0
    assert all(p.grad is not None and not p.grad.any() for p in m.parameters())
