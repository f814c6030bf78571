"""`dntm export` and `dntm serve`: a trained model for others, as a folder or as a page."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import tyro

from dntm.files import new_folder


@dataclass(frozen=True, kw_only=True)
class Export:
    """Write a run's best weights, in half precision, with vocabulary, settings and model card."""

    run_folder: tyro.conf.Positional[Path]
    """A finished run (dntm train)."""
    static: Path | None = None
    """The finished run of a baseline, to stand beside the model as its static twin."""
    output_dir: Path
    """The folder to make."""
    note: str = ""
    """More about the data for the model card, such as licences."""
    half: bool = True
    """Two bytes a weight instead of four."""
    overwrite: bool = False
    """Replace the folder if it exists."""

    def run(self) -> None:
        """Write the folder and say how large it is."""
        from dntm.model.checkpoint import write_checkpoint
        from dntm.model.text_model import TextModel
        from dntm.reader.engine import baseline
        from dntm.training.model_card import model_card

        card = model_card(self.run_folder, self.static, self.note)
        model = TextModel.load(self.run_folder)
        static = baseline(self.static, model.vocabulary) if self.static else None
        with new_folder(self.output_dir, overwrite=self.overwrite) as folder:
            write_checkpoint(model.model, model.vocabulary, folder, half=self.half)
            _copy_cache(self.run_folder, folder)
            (folder / "README.md").write_text(card, encoding="utf-8")
            if static is not None:
                (folder / "static").mkdir()
                write_checkpoint(static, model.vocabulary, folder / "static", half=self.half)
                _copy_cache(self.static or self.run_folder, folder / "static")
        size = sum(path.stat().st_size for path in self.output_dir.rglob("*") if path.is_file())
        print(f"model: {self.output_dir} ({size / 1e6:.1f} MB)")


def _copy_cache(run: Path, folder: Path) -> None:
    """Let a checkpoint carry the cache that was tuned for the run's weights, if any."""
    from dntm.model.cache import Cache
    from dntm.model.checkpoint import best_of

    if found := Cache.load(best_of(run)):
        found.save(folder)


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
            from dntm.web.guard import Limits

            torch.set_num_threads(1)
            reader = Reader.from_pretrained(self.model, self.static)
            app = create_app(reader, Limits(threads=self.threads), hosts=[self.host, *self.names])
            print(f"reading on {address(taken)} (Ctrl-C ends it)", flush=True)
            with suppress(KeyboardInterrupt):
                serve(app, taken, browser=self.browser)
