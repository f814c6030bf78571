"""`dntm serve`: the local page."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Serve:
    """Open a local page: paste a text and watch the meanings of its unknown words form."""

    model: Path | None = None
    """A run folder or checkpoint; without it, the model that comes with dntm."""
    static: Path | None = None
    """A baseline's run or checkpoint to compare with; without it, the one inside the model's
    folder, or else the model itself without its memory."""
    host: str = "127.0.0.1"
    """The address to listen on; only this machine can reach the default one."""
    names: tuple[str, ...] = ()
    """Names by which browsers on other machines call this one, such as reading.example; addresses
    are always answered."""
    port: int = 8321
    """The port to listen on; 0 takes any free one."""
    browser: bool = True
    """Open the page in the browser."""
    threads: int = 2
    """How many texts are computed at the same time."""

    def run(self) -> None:
        """Serve until interrupted."""
        from dntm.web.server import address, bind, serve

        if self.threads < 1:
            raise ValueError(f"threads is {self.threads}, expected at least 1")
        with bind(self.host, self.port) as taken:
            import torch

            from dntm.reader.reader import Reader
            from dntm.web.app import create_app
            from dntm.web.requests import Limits

            torch.set_num_threads(1)
            reader = Reader.from_pretrained(self.model, self.static)
            app = create_app(reader, Limits(threads=self.threads), hosts=[self.host, *self.names])
            print(f"reading on {address(taken)} (Ctrl-C ends it)", flush=True)
            with suppress(KeyboardInterrupt):
                serve(app, taken, browser=self.browser)
