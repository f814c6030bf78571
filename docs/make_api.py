"""Makes the reference of the public API with pdoc: `make docs`, or give it a folder.

The public API is `dntm.__all__`. A name without a home, an annotation that means nothing, a
docstring that pdoc cannot read: each is an error.
"""

import sys
import warnings
from pathlib import Path

import pdoc

import dntm


def make(target: Path) -> int:
    """Write the pages; returns how many."""
    warnings.simplefilter("error", UserWarning)
    for name in dntm.__all__:
        getattr(dntm, name)
    pdoc.render.configure(docformat="markdown", show_source=False, math=False)
    pdoc.pdoc("dntm", output_directory=target)
    return len(list(target.rglob("*.html")))


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/api")
    sys.stdout.write(f"{make(folder)} pages: {folder / 'index.html'}\n")
