"""Python examples print the output that their pages show, and all links are valid.

`python -m tests.test_readme` writes the current output of the examples into the pages.
"""

import contextlib
import io
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dntm.cli.main import main

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = (README, *sorted((ROOT / "docs").glob("*.md")))
EXAMPLES = (README, ROOT / "docs" / "reading.md")
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
SYMBOL = re.compile(r"\[`((?:\w+\.)?\w+)`\]\((src/[\w/]+\.py)\)")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
MODULE = re.compile(r"`((?:corpus|model|evaluation|training|study|reader|web|cli)/[\w/]+\.\w+)`")


COMMAND = re.compile(r"^dntm (score docs/.*)$", re.MULTILINE)


def updated(page: Path) -> str:
    """The page with the current output of its examples; its `dntm score docs/...` run first."""
    text = page.read_text(encoding="utf-8")
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("docs").symlink_to(ROOT / "docs")
        for command in COMMAND.findall(text):
            main(command.split())
        return EXAMPLE.sub(lambda m: f"```python\n{m[1]}```\n\n```text\n{printed(m[1])}```", text)


def printed(code: str) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code, {})
    return output.getvalue()


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.name)
def test_the_examples_print_what_is_shown(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert EXAMPLE.findall(text)
    assert updated(page) == text


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
        names = (path.name, f"results/{path.parent.name}`", f"{path.stem}.svg")
        assert path.is_dir() or any(name in text for name in names), path


def test_the_map_has_a_row_for_every_package_and_top_level_module() -> None:
    rows = (ROOT / "docs" / "code.md").read_text(encoding="utf-8")
    for path in (ROOT / "src" / "dntm").iterdir():
        if not path.name.startswith("__") and path.name != "py.typed":
            assert f"`src/dntm/{path.name}{'/' if path.is_dir() else ''}`" in rows, path.name


if __name__ == "__main__":
    for page in EXAMPLES:
        page.write_text(updated(page), encoding="utf-8")
