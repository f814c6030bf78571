"""Examples print the output that their pages show, and all links are valid.

`make tour` (python -m tests.test_readme) writes the current output of the examples into the pages,
and the figures of the tour.
"""

import contextlib
import io
import re
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from matplotlib.image import imread

from dntm.cli.main import main

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = (README, *sorted((ROOT / "docs").glob("*.md")))
IMAGES = ROOT / "docs" / "images"
EXAMPLES = (README, ROOT / "docs" / "tour.md")
EXAMPLE = re.compile(r"```(python|console)\n([^`]*)```\n\n```text\n(.*?)```", re.DOTALL)
SYMBOL = re.compile(r"\[`((?:\w+\.)?\w+)`\]\((src/[\w/]+\.py)\)")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
MODULE = re.compile(r"`((?:corpus|model|evaluation|training|study|reader|web|cli)/[\w/]+\.\w+)`")


def updated(page: Path) -> tuple[str, dict[str, bytes]]:
    """The page with the current output of its examples, and the figures that they save."""
    names: dict[str, object] = {}

    def example(match: re.Match[str]) -> str:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            if match[1] == "python":
                exec(match[2], names)
            else:
                main(shlex.split(match[2])[2:])  # $ dntm ...
        lines = "".join(f"{line.rstrip()}\n" for line in output.getvalue().splitlines())
        return f"```{match[1]}\n{match[2]}```\n\n```text\n{lines}```"

    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("docs").symlink_to(ROOT / "docs")
        text = EXAMPLE.sub(example, page.read_text(encoding="utf-8"))
        return text, {path.name: path.read_bytes() for path in Path().glob("*.png")}


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.name)
def test_the_examples_print_what_is_shown(page: Path) -> None:
    shown = page.read_text(encoding="utf-8")

    text, figures = updated(page)

    assert EXAMPLE.search(shown)
    assert text == shown
    for name, figure in figures.items():
        old, new = imread(IMAGES / name), imread(io.BytesIO(figure))
        assert old.shape == new.shape, name
        assert float(np.abs(old - new).mean()) < 0.005, name


def test_linked_functions_and_classes_exist() -> None:
    found = SYMBOL.findall(README.read_text(encoding="utf-8"))

    assert len(found) > 12
    for name, path in found:
        text = (ROOT / path).read_text(encoding="utf-8")
        for part in name.split("."):
            assert re.search(rf"^\s*(def|class) {part}\b", text, re.MULTILINE), f"{path}: {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        path = page.parent / target if target else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_named_in_the_docs_exist(page: Path) -> None:
    for name in MODULE.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / "src" / "dntm" / name).exists(), name


def test_result_files_are_cited() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)

    for path in (ROOT / "docs" / "results").rglob("*"):
        names = (path.name, f"/{path.parent.name}`", f"{path.stem}.svg")
        assert path.is_dir() or any(name in text for name in names), path


def test_the_map_has_a_row_for_every_package_and_top_level_module() -> None:
    rows = (ROOT / "docs" / "code.md").read_text(encoding="utf-8")
    for path in (ROOT / "src" / "dntm").iterdir():
        if not path.name.startswith("__") and path.name != "py.typed":
            assert f"`src/dntm/{path.name}{'/' if path.is_dir() else ''}`" in rows, path.name


if __name__ == "__main__":
    for page in EXAMPLES:
        text, figures = updated(page)
        page.write_text(text, encoding="utf-8")
        for name, figure in figures.items():
            (IMAGES / name).write_bytes(figure)
