"""README's Python prints what README shows, and the links of all pages lead somewhere.

`python -m tests.test_readme` writes the current output of the example into README.
"""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = (README, *sorted((ROOT / "docs").glob("*.md")))
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
SYMBOL = re.compile(r"\[`((?:\w+\.)?\w+)`\]\((src/[\w/]+\.py)\)")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
MODULE = re.compile(r"`((?:corpus|model|evaluation|training|study|reader|web|cli)/[\w/]+\.\w+)`")


def printed(code: str) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code, {})
    return output.getvalue()


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_example_prints_what_is_shown() -> None:
    examples = EXAMPLE.findall(README.read_text(encoding="utf-8"))

    assert examples
    for code, shown in examples:
        assert printed(code) == shown


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
    README.write_text(
        EXAMPLE.sub(
            lambda m: f"```python\n{m[1]}```\n\n```text\n{printed(m[1])}```",
            README.read_text(encoding="utf-8"),
        ),
        encoding="utf-8",
    )
