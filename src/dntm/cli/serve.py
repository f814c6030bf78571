"""`dntm serve`: the local page."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Serve:
    """Serve a local page that reads texts and predicts the meaning of unknown words."""

    model: Path | None = None
    """A run folder or a checkpoint; if omitted, the bundled model."""
    static: Path | None = None
    """The baseline to compare with, a run folder or a checkpoint; if omitted, the one in the
    model's folder, or else the model itself without its memory."""
    host: str = "127.0.0.1"
    """Address to listen on; only this machine can reach the default."""
    names: tuple[str, ...] = ()
    """Host names of this machine for browsers on other machines, such as reading.example."""
    port: int = 8321
    """Port to listen on; 0: any free port."""
    browser: bool = True
    """Open the page in the browser."""
    threads: int = 2
    """Texts that are read at the same time."""

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
