"""`dntm continue`, `fill` and `serve`: ask a model about a text, in the terminal or on a page."""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

from dntm.cli.reading import File, ModelOptions, ReaderOptions, Shared
from dntm.cli.runs import print_table, printable
from dntm.reader.reading import Unit


@dataclass(frozen=True, kw_only=True)
class Continue:
    """Sample a continuation of a text, which can mention the entities of the text."""

    source: File
    sentences: int = 3
    """Number of sentences to sample."""
    tokens: int = 60
    """Maximum length of a sentence, in words."""
    temperature: float = 0.7
    """Sampling temperature: below 1, likely words become more likely; 0: always the most likely."""
    top_p: float = 0.9
    """Nucleus sampling: sample from the most likely words with this total probability."""
    samples: int = 1
    """Number of continuations, with the seeds SEED, SEED + 1, ..."""
    seed: int = 0
    """Random seed."""
    options: Shared = field(default_factory=ReaderOptions)
    """Options of the model and of its entities."""

    def run(self) -> None:
        """Read the first document of the file and print its continuation."""
        if self.samples < 1:
            raise ValueError(f"samples is {self.samples}, expected at least 1")
        text = self.options.text(self.source)
        reader = self.options.reader()
        position = reader.position(self.options.prepared(reader, text))
        for seed in range(self.seed, self.seed + self.samples):
            found = reader.continue_text(
                position,
                sentences=self.sentences,
                tokens=self.tokens,
                temperature=self.temperature,
                top_p=self.top_p,
                seed=seed,
            )
            print(printable(found.text))


@dataclass(frozen=True, kw_only=True)
class Fill:
    """Rank words and entities for the gap of a sentence by the surprisal of the sentence."""

    sentence: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SENTENCE")]
    """The sentence with [] for its gap, such as "[1] sat down at the [] ."; [1] is the first entity
    of --history."""
    history: str | None = None
    """The text before the sentence: a file, or - for standard input."""
    choose: Literal["both", "words", "entities"] = "both"
    """What can fill the gap."""
    candidates: int = 200
    """Number of words to try, the most likely at the gap; 0: the whole vocabulary."""
    top: int = 10
    """Number of candidates to print."""
    unit: Unit = "bits"
    """The unit of surprisal."""
    options: Shared = field(default_factory=ReaderOptions)
    """Options of the model and of its entities."""

    def run(self) -> None:
        """Print the best candidates, one per line."""
        if self.top < 1:
            raise ValueError(f"top is {self.top}, expected at least 1")
        text = None if self.history is None else self.options.text(self.history)
        reader = self.options.reader()
        found = reader.fill(
            self.sentence,
            "" if text is None else self.options.prepared(reader, text),
            choose=self.choose,
            candidates=self.candidates,
            unit=self.unit,
        )
        rows = [[f"{self.unit} of the sentence", "dynamic", "static"]]
        for filling in found[: self.top]:
            word = printable(filling.word) + (f" [{filling.entity}]" if filling.entity else "")
            rows.append([word, f"{filling.surprisal:.3f}", f"{filling.static_surprisal:.3f}"])
        print_table(rows)


@dataclass(frozen=True, kw_only=True)
class Serve(ModelOptions):
    """Serve a local web page that reads texts and predicts the meaning of unknown words."""

    host: str = "127.0.0.1"
    """Address to listen on. The default is reachable from this machine only."""
    names: tuple[str, ...] = ()
    """Host names under which browsers on other machines may open the page, such as
    reading.example."""
    port: int = 8321
    """Port to listen on; 0: any free port."""
    browser: bool = True
    """Open the page in a browser."""
    threads: int = 2
    """Number of texts that are read at the same time."""

    def run(self) -> None:
        """Serve until interrupted."""
        from dntm.web.server import address, bind, serve

        if self.threads < 1:
            raise ValueError(f"threads is {self.threads}, expected at least 1")
        with bind(self.host, self.port) as listening:
            import torch

            from dntm.reader.reader import Reader
            from dntm.web.app import create_app
            from dntm.web.requests import Limits

            torch.set_num_threads(1)
            reader = Reader.from_pretrained(self.model, self.static)
            app = create_app(reader, Limits(threads=self.threads), hosts=[self.host, *self.names])
            print(f"Serving on {address(listening)} (Ctrl-C to stop)", flush=True)
            with suppress(KeyboardInterrupt):
                serve(app, listening, browser=self.browser)
