"""Cost of dynamic embeddings on a pretrained core, next to the base model's own forward pass.

Every row reads the same documents of the train split, in turns; the best time of each counts.

    plain forward pass     the base model reads each document in one call, with all logits
    A, D, scoring          every token of the documents, as `dntm evaluate` scores them
    A, D, training         a training step per document, with the recipe `adapter`

Memory is that of a fresh process that does the same. Documents hold pieces of words and mentions;
one mention is one token, also in the plain forward pass.
"""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from benchmarks.documents import Document, sample_documents
from benchmarks.timing import Options, print_machine, seconds
from benchmarks.train import trainer
from dntm.corpus.dataset import Dataset
from dntm.corpus.vocabulary import entity_rows
from dntm.model.base_model import load_base
from dntm.model.config import Variant
from dntm.model.language_model import DynamicTextModel
from dntm.study.config import RECIPES
from dntm.training.processes import matmul_precision, peak_memory_gb

PLAIN = "plain forward pass"
VARIANTS: dict[str, Variant] = {"A": "baseline", "D": "both"}
TASKS = (PLAIN, *(f"{name}, {what}" for name in VARIANTS for what in ("scoring", "training")))


@dataclass(frozen=True, kw_only=True)
class AdapterOptions(Options):
    """Options of this benchmark."""

    core: Annotated[str, tyro.conf.Positional]
    """The base model: a folder, a GGUF file or a Hub id."""
    dataset: Path
    """The dataset folder to sample documents from."""
    documents: int = 6
    """Number of documents."""
    rounds: int = 3
    """How often each is timed; the best time counts."""
    seed: int = 0
    """Seed of the sample."""


@dataclass(frozen=True)
class Texts:
    """The documents as rows of the base model's vocabulary."""

    documents: Sequence[Document]
    vocabulary: int
    entities: int

    @classmethod
    def of(cls, options: AdapterOptions) -> "Texts":
        """Sample the documents."""
        dataset, base = Dataset.open(options.dataset), load_base(options.core)
        vocabulary = base.vocabulary(dataset.vocabulary.entities)
        documents = sample_documents(dataset, options.documents, options.seed, vocabulary)
        return cls(documents, len(vocabulary), vocabulary.entities)

    @property
    def tokens(self) -> int:
        """Number of predicted tokens."""
        return sum(len(sentence) - 1 for document in self.documents for sentence in document)


def task(options: AdapterOptions, texts: Texts, name: str) -> Callable[[], None]:
    """What is measured under this name."""
    if name == PLAIN:
        return lambda: plain_pass(options.core, texts)
    variant, what = name.split(", ")
    model = make_model(options, texts, variant)
    return (scoring if what == "scoring" else training)(model, texts)


@torch.no_grad()
def plain_pass(core: str, texts: Texts) -> None:
    """Logits of all documents from the base model alone; each mention is its first piece."""
    base, first = load_base(core), entity_rows(texts.entities).stop
    for document in texts.documents:
        rows = [row for sentence in document for row in sentence[1:]]
        pieces = [base.start, *(max(row - first, 0) for row in rows)]
        h = base.decoder(inputs_embeds=base.x[pieces].unsqueeze(0)).last_hidden_state[0]
        _ = torch.log_softmax(h @ base.y.t(), dim=1)


def make_model(options: AdapterOptions, texts: Texts, name: str) -> DynamicTextModel:
    """A model before training."""
    dim = load_base(options.core).x.shape[1]
    config = replace(
        RECIPES["adapter"][0],
        core=options.core,
        variant=VARIANTS[name],
        embedding_dim=dim,
        hidden_dim=dim,
        vocabulary=texts.vocabulary,
        entities=texts.entities,
    )
    return DynamicTextModel(config, torch.Generator().manual_seed(options.seed))


def scoring(model: DynamicTextModel, texts: Texts) -> Callable[[], None]:
    """Score every token."""

    def score() -> None:
        model.eval()
        for document in texts.documents:
            model.score(model.plan([document]), model.initial_state(1))

    return score


def training(model: DynamicTextModel, texts: Texts) -> Callable[[], None]:
    """Update after every document."""
    train, precision = trainer(model), RECIPES["adapter"][1].matmul_precision

    def update() -> None:
        model.train()
        with matmul_precision(precision):
            for document in texts.documents:
                train([document])

    return update


def measure(options: AdapterOptions) -> dict[str, Any]:
    """Tokens per second and peak memory of each task."""
    texts = Texts.of(options)
    measured = {name: task(options, texts, name) for name in TASKS}
    best = dict.fromkeys(measured, float("inf"))
    for run in measured.values():  # the first call reads the model and converts it
        run()
    for _ in range(options.rounds):
        best |= {name: min(best[name], seconds(run)) for name, run in measured.items()}
    rates = {name: texts.tokens / took for name, took in best.items()}
    memory = {name: memory_gb(options, name) for name in measured}
    return {"tokens": texts.tokens, "tokens_per_second": rates, "peak_memory_gb": memory}


def memory_gb(options: AdapterOptions, name: str) -> float:
    """Peak memory of a fresh process that does this task."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(_run_and_measure, options, name).result()


def _run_and_measure(options: AdapterOptions, name: str) -> float:
    options.set_threads()
    task(options, Texts.of(options), name)()
    return peak_memory_gb()


def main(options: AdapterOptions) -> None:
    """Print tokens per second and memory."""
    options.set_threads()
    found = measure(options)
    print(f"{found['tokens']:,} tokens of {options.documents} documents of {options.dataset}")
    print_machine()
    rates, memory = found["tokens_per_second"], found["peak_memory_gb"]
    plain = rates[PLAIN]
    for name, rate in rates.items():
        share = f"{rate / plain:5.2f} of the plain pass"
        print(f"{name:20} {rate:8,.0f} tokens/s  {share}  {memory[name]:5.2f} GB")
    options.save({"core": Path(options.core).name, "dataset": str(options.dataset)} | found)


if __name__ == "__main__":
    main(tyro.cli(AdapterOptions, description=__doc__))
