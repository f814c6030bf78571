"""Makes the API reference from the docstrings, with pdoc: `make docs`, or give it a folder.

A name that is public but has no home, an annotation that means nothing, a docstring that pdoc
cannot read: each is an error.
"""

import sys
import warnings
from pathlib import Path

import pdoc

import dntm

PACKAGES = ("corpus", "model", "evaluation", "training", "study", "reader")
"""What can be built on; the other packages are programs."""


def make(target: Path) -> int:
    """Write the pages; returns how many."""
    warnings.simplefilter("error", UserWarning)
    for name in dntm.__all__:
        getattr(dntm, name)
    pdoc.render.configure(docformat="markdown", show_source=False, math=False)
    pdoc.pdoc("dntm", *(f"dntm.{name}" for name in PACKAGES), output_directory=target)
    return len(list(target.rglob("*.html")))


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/api")
    sys.stdout.write(f"{make(folder)} pages: {folder / 'index.html'}\n")
