"""`dntm export`: a trained model as a small folder to give away."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from dntm.files import new_folder


@dataclass(frozen=True, kw_only=True)
class Command:
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
        from dntm.evaluation.scoring import TextModel
        from dntm.model.checkpoint import write_checkpoint
        from dntm.reader.pair import baseline
        from dntm.training.model_card import model_card

        card = model_card(self.run_folder, self.static, self.note)
        model = TextModel.load(self.run_folder)
        static = baseline(self.static, model.vocabulary) if self.static else None
        with new_folder(self.output_dir, overwrite=self.overwrite) as folder:
            write_checkpoint(model.model, model.vocabulary, folder, half=self.half)
            (folder / "README.md").write_text(card, encoding="utf-8")
            if static is not None:
                (folder / "static").mkdir()
                write_checkpoint(static, model.vocabulary, folder / "static", half=self.half)
        size = sum(path.stat().st_size for path in self.output_dir.rglob("*") if path.is_file())
        print(f"model: {self.output_dir} ({size / 1e6:.1f} MB)")
