"""A tiny model, a reader that waits, and a server."""

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from dntm.corpus.text import WORD
from dntm.corpus.vocabulary import Vocabulary
from dntm.reader.engine import ModelPair
from dntm.reader.reader import Reader
from dntm.reader.reading import SentenceReading
from dntm.web.server import Server, address, bind
from tests.reader.small import checkpoint

TEXT = (
    "Old Marta kept the ferry. Every day Marta rowed over. The zorrel slept. A zorrel sees Marta."
)
"""Four sentences that repeat Marta and the zorrel."""
INVENTED = ("zorrel", "blicket", "florp", "dax", "grellick", "zindle")
STORIES = sorted((Path(__file__).parents[1] / "reader" / "stories").glob("*.txt"))
PATIENCE = 60.0
"""Seconds after which a test fails."""


class PausingReader(Reader):
    """Counts its sentences and returns them, except the first, only while its gate is open."""

    def __init__(self, models: ModelPair) -> None:
        super().__init__(models)
        self.steps = 0
        self.known: list[int] = []
        """The number of known sentences of each stream."""
        self.gate = threading.Event()
        self.gate.set()

    def stream(self, *text: Any, **options: Any) -> Iterator[SentenceReading]:
        self.known.append(len(options.get("known", ())))
        for sentence in super().stream(*text, **options):
            self.steps += 1
            if sentence.index:
                self.gate.wait(PATIENCE)
            yield sentence


def save_tiny_model(folder: Path) -> Path:
    """A model with random weights and nine entity slots."""
    texts = [TEXT, *(path.read_text(encoding="utf-8") for path in STORIES)]
    words = Counter(word.lower() for text in texts for word in WORD.findall(text))
    names = {word for text in texts for word in re.findall(r"(?<=[a-z] )[A-Z]\w+", text)}
    for word in (*(name.lower() for name in names), *INVENTED):
        del words[word]
    vocabulary = Vocabulary.from_counts(words, size=800, entities=9)
    return checkpoint(folder, vocabulary=vocabulary)


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    """Serve the application on a free port; yields its address."""
    taken = bind("127.0.0.1", 0)
    server = app.state.server = Server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield address(taken).rstrip("/")
    finally:
        server.should_exit = True
        thread.join()
        taken.close()
