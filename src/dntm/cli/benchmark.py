"""`dntm benchmark ...`: how fast this machine reads text, pretrains, trains, fills gaps, serves.

Each is printed beside the obvious way to do it and beside the machine's limit; a share of a limit
is that of one machine, which is printed with it.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from dntm.benchmark.machine import machine_name
from dntm.cli.runs import refuse_unused
from dntm.corpus.dataset import Split
from dntm.files import write_text
from dntm.model.config import ModelConfig
from dntm.training.config import EncoderConfig


@dataclass(frozen=True, kw_only=True)
class Data:
    """Time the reading of plain text, beside a naive loop and the machine's limit."""

    megabytes: int = 50
    """How much text to read."""

    def run(self) -> None:
        """Print tokens a second and memory."""
        if self.megabytes < 1:
            raise ValueError(f"megabytes is {self.megabytes}, expected at least 1")
        from dntm.benchmark.data import measure

        found = measure(self.megabytes)
        print(f"{found.tokens:,} tokens of plain text")
        _print_machine(1, "processor")
        print(f"ours             {found.ours:12,.0f} tokens/s")
        print(f"naive loop       {found.naive:12,.0f} tokens/s ({found.ours / found.naive:.1f}x)")
        print(f"limit (split)    {found.limit:12,.0f} tokens/s ({found.ours / found.limit:.0%})")
        early, end = found.memory_early, found.memory_end
        print(f"peak memory      {early:.0f} MiB after a tenth, {end:.0f} MiB at the end")
        print(f"whole build      {found.build:12,.0f} tokens/s, {found.memory_build:.0f} MiB")


@dataclass(frozen=True, kw_only=True)
class _Timed:
    """Options of what PyTorch computes."""

    threads: int = 0
    """Threads of the matrix products; 0: as many as PyTorch chooses."""
    json: Path | None = None
    """Write the numbers to this file, too."""

    def _set_threads(self) -> None:
        if self.threads < 0:
            raise ValueError(f"threads is {self.threads}, expected 0 or more")
        import torch

        if self.threads:
            torch.set_num_threads(self.threads)

    def _keep(self, settings: dict[str, Any], found: dict[str, Any]) -> None:
        if not self.json:
            return
        import torch

        ran_on = {"torch": torch.__version__, "machine": machine_name()}
        write_text(self.json, json.dumps(settings | ran_on | found, indent=2) + "\n")
        print(f"numbers: {self.json}")


@dataclass(frozen=True, kw_only=True)
class Pretrain(_Timed):
    """Time pretraining beside a plain implementation and the machine's limit."""

    vocabulary: int = 10_000
    """Rows of the embedding table."""
    rounds: int = 3
    """How often each way is timed; the best time counts."""
    seed: int = 0
    """Which sentences are made up."""
    model: EncoderConfig = field(default_factory=EncoderConfig)

    def run(self) -> None:
        """Print the table."""
        if self.rounds < 1:
            raise ValueError(f"rounds is {self.rounds}, expected at least 1")
        self._set_threads()
        from dntm.benchmark.pretrain import benchmark_pretraining

        found = benchmark_pretraining(
            self.model, vocabulary=self.vocabulary, rounds=self.rounds, seed=self.seed
        )
        plain, ideal = found.plain_words_per_second, found.ideal_words_per_second
        _print_machine(found.threads, found.clock)
        print(f"ours             {found.words_per_second:12,.0f} words/s")
        print(f"packed sequences {plain:12,.0f} words/s ({found.speedup:.2f}x)")
        print(f"ideal            {ideal:12,.0f} words/s ({found.of_ideal:.0%})")
        print(f"matrix product   {found.matmul_gflops:12,.1f} GF/s")
        self._keep({"rounds": self.rounds, "seed": self.seed}, found.as_plain())


@dataclass(frozen=True, kw_only=True)
class _Sampled(_Timed):
    """Options of what is trained on sampled documents."""

    dataset: Path | None = None
    """The dataset folder to sample documents from; random documents where not given."""
    batch: int = 8
    """Documents read side by side."""
    rounds: int = 3
    """How often each way is timed; the best time counts."""
    seed: int = 0
    """Which documents are sampled."""
    model: ModelConfig = field(default_factory=ModelConfig)

    def _ready(self) -> dict[str, Any]:
        """Check the options and set the threads; what to call the measuring with."""
        if self.dataset is not None:
            _refuse_sizes(self.model)
        self._set_threads()
        return {name: getattr(self, name) for name in ("dataset", "batch", "rounds", "seed")}

    def _text(self) -> str:
        return "random documents" if self.dataset is None else str(self.dataset)

    def _keep_all(self, found: dict[str, Any]) -> None:
        settings = {"batch": self.batch, "rounds": self.rounds, "seed": self.seed}
        self._keep({"text": self._text()} | settings, found)


@dataclass(frozen=True, kw_only=True)
class Train(_Sampled):
    """Time training beside the naive loop over sentences and the machine's roofline."""

    def run(self) -> None:
        """Print the table."""
        options = self._ready()
        from dntm.benchmark.train import benchmark_training

        found = benchmark_training(self.model, **options)
        ours, naive, ideal = (
            found.tokens_per_second, found.naive_tokens_per_second, found.ideal_tokens_per_second
        )  # fmt: skip
        short, long = found.short_seconds_per_token, found.long_seconds_per_token
        print(f"{found.tokens:,} tokens of {self._text()} in batches of {self.batch}")
        _print_machine(found.threads, found.clock)
        print(f"ours             {ours:12,.0f} tokens/s")
        print(f"naive loop       {naive:12,.0f} tokens/s ({found.speedup:.2f}x)")
        print(f"ideal            {ideal:12,.0f} tokens/s ({found.of_ideal:.0%}), the roofline of")
        print(
            f"  arithmetic     {found.arithmetic_tokens_per_second:12,.0f} tokens/s: "
            f"matrix products at {found.matmul_gflops:,.1f} GF/s"
        )
        print(
            f"  weights        {found.weights_tokens_per_second:12,.0f} tokens/s: "
            f"read at each recurrent step at {found.weights_gb_per_second:,.1f} GB/s"
        )
        print(f"peak memory      {found.peak_memory_gb:12,.2f} GB")
        print(f"20 sentences     {short * 1e3:12,.3f} ms/token")
        print(f"400 sentences    {long * 1e3:12,.3f} ms/token ({found.long_over_short:.2f}x)")
        self._keep_all(found.as_plain())


@dataclass(frozen=True, kw_only=True)
class Peers(_Sampled):
    """Time every peer beside our models: training, scoring, parameters and memory."""

    rounds: int = 2
    """How often each is timed; the best time counts."""

    def run(self) -> None:
        """Print the table."""
        options = self._ready()
        import torch

        from dntm.benchmark.machine import clock_name
        from dntm.benchmark.peers import benchmark_peers

        found = benchmark_peers(self.model, **options)
        _print_machine(torch.get_num_threads(), clock_name())
        print(f"{'':28}{'parameters':>12}{'trained/s':>12}{'scored/s':>12}{'memory GB':>12}")
        for cost in found:
            trained = "" if cost.trained is None else f"{cost.trained:,.0f}"
            memory = "" if cost.peak_memory_gb is None else f"{cost.peak_memory_gb:.2f}"
            scored = f"{cost.scored:,.0f}"
            print(f"{cost.name:28}{cost.parameters:12,}{trained:>12}{scored:>12}{memory:>12}")
        self._keep_all({"peers": [asdict(cost) for cost in found]})


@dataclass(frozen=True, kw_only=True)
class Cloze(_Timed):
    """Time the cloze test on a split, beside reading every candidate's sentence in full."""

    dataset: Path
    """The dataset folder."""
    split: Split = "test"
    """Which split."""
    seed: int = 0
    """Which random weights."""
    model: ModelConfig = field(default_factory=ModelConfig)

    def run(self) -> None:
        """Print the table."""
        _refuse_sizes(self.model)
        self._set_threads()
        from dntm.benchmark.reading import benchmark_cloze

        found = benchmark_cloze(self.model, self.dataset, split=self.split, seed=self.seed)
        naive = found.naive_seconds
        print(f"{found.gaps:,} gaps, {found.candidates:,} candidates of {self.dataset}")
        _print_machine(found.threads, found.clock)
        print(f"ours             {found.seconds:12,.1f} s")
        print(f"naive            {naive:12,.1f} s ({naive / found.seconds:.1f}x, scaled)")
        print(f"peak memory      {found.peak_memory_gb:12,.2f} GB")
        settings = {"text": str(self.dataset), "split": self.split, "seed": self.seed}
        self._keep(settings, asdict(found))


@dataclass(frozen=True, kw_only=True)
class Read(_Timed):
    """Time the reading of a long text by the dynamic and the static model, and watch its memory."""

    source: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """A text, for example a novel; of several documents the first."""
    model: Path | None = None
    """A run folder or checkpoint; without it, the model that comes with dntm."""
    precision: Literal["double", "single"] = "double"
    """The precision of both models."""
    threads: int = 1
    """Threads of the matrix products; 0: as many as PyTorch chooses."""

    def run(self) -> None:
        """Print words a second and memory."""
        self._set_threads()
        from dntm.benchmark.reading import benchmark_reading

        found = benchmark_reading(self.source, self.model, self.precision)
        words, limit = found.words_per_second, found.output_words_per_second
        print(f"{found.words:,} words of {self.source}, {found.entities:,} entities")
        _print_machine(self.threads, "processor")
        print(f"both models      {words:12,.0f} words/s, {self.precision} precision")
        print(
            f"output layers    {limit:12,.0f} words/s ({words / limit:.0%}): their products alone"
        )
        early, end = found.memory_early, found.memory_end
        print(f"peak memory      {early:.0f} MiB after a tenth, {end:.0f} MiB at the end")
        self._keep({"text": str(self.source), "precision": self.precision}, asdict(found))


@dataclass(frozen=True, kw_only=True)
class Serve:
    """Start a server on this machine and let many readers read at once."""

    model: Path | None = None
    """A run folder or checkpoint; without it, the model that comes with dntm."""
    readers: int = 16
    """How many readers at once, 1 to 32."""
    seconds: float = 60.0
    """How long they read, at most 600."""
    threads: int = 2
    """Worker threads of the server."""

    def run(self) -> None:
        """Print times, errors, mixed texts and memory; fail where there is an error."""
        if not 1 <= self.readers <= 32:
            raise ValueError(f"readers is {self.readers}, expected 1 to 32")
        if not 1 <= self.seconds <= 600:
            raise ValueError(f"seconds is {self.seconds}, expected 1 to 600")
        from dntm.benchmark.serve import benchmark_serving

        found = benchmark_serving(
            self.model, readers=self.readers, seconds=self.seconds, threads=self.threads
        )
        print(f"first sentence, one reader  {_milliseconds(found.first_alone)}")
        print(f"first sentence, {self.readers:2} readers  {_milliseconds(found.first_together)}")
        print(f"readings                    {found.readings:8,} in {found.seconds:.0f} s")
        print(f"sentences                   {found.sentences / found.seconds:8,.1f} a second")
        print(f"mixed texts                 {found.mixed:8,}")
        print(f"errors                      {len(found.errors):8,}")
        print("server memory (MiB)         " + " ".join(f"{mb:,.0f}" for mb in found.memory_mb))
        if found.errors or found.mixed:
            raise ValueError(
                f"{found.mixed} mixed texts, {len(found.errors)} errors, the first: "
                + (found.errors[0] if found.errors else "none")
            )


def _refuse_sizes(model: ModelConfig) -> None:
    refuse_unused(model, "vocabulary entities", "with --dataset, which has its own", "model.")


def _print_machine(threads: int, clock: str) -> None:
    print(f"machine          {machine_name()}")
    print(f"threads          {threads:12,} ({clock} seconds)")


def _milliseconds(times: Sequence[float]) -> str:
    import numpy as np

    if not times:
        return "       - no reading reached it"
    median, late, most = np.quantile(np.asarray(times) * 1e3, [0.5, 0.95, 1.0])
    return f"{median:8,.0f} ms median, {late:,.0f} ms 95 %, {most:,.0f} ms longest"
