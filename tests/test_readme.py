"""README's Python runs and prints what README shows, and its links lead where they say.

`python -m tests.test_readme` writes what is printed now, and the lines that functions are on now,
into README.
"""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
FUNCTION = re.compile(r"\[`((?:\w+\.)?\w+)`\]\((src/[\w/]+\.py)#(\w+)\)")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def printed(code: str) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(code, {})
    return said.getvalue()


def line_of(path: str, name: str) -> str:
    """Where a function, a class, a field, or a method of a class stands."""
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    line = 0
    for part in name.split("."):
        here = re.compile(rf"\s*(def {part}\(|class {part}\b|{part}: )")
        found = [n for n in range(line + 1, len(lines) + 1) if here.match(lines[n - 1])]
        assert found, f"{path} has no {name}"
        line = found[0]
    return f"L{line}"


def up_to_date(text: str) -> str:
    text = EXAMPLE.sub(lambda m: f"```python\n{m[1]}```\n\n```text\n{printed(m[1])}```", text)
    return FUNCTION.sub(lambda m: m[0].replace(f"#{m[3]}", f"#{line_of(m[2], m[1])}"), text)


def test_the_example_prints_what_is_shown() -> None:
    examples = EXAMPLE.findall(README.read_text(encoding="utf-8"))

    assert examples
    for code, shown in examples:
        assert printed(code) == shown


def test_functions_are_on_the_lines_that_are_linked() -> None:
    found = FUNCTION.findall(README.read_text(encoding="utf-8"))

    assert len(found) > 8
    for function, path, line in found:
        assert line == line_of(path, function), function


@pytest.mark.parametrize("page", ["README.md", "docs/code.md"])
def test_links_lead_to_files_that_are_there(page: str) -> None:
    path = ROOT / page

    for target in LINK.findall(path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_the_map_has_a_row_for_every_package_and_module_at_the_top() -> None:
    rows = (ROOT / "docs" / "code.md").read_text(encoding="utf-8")
    for path in (ROOT / "src" / "dntm").iterdir():
        if path.name.startswith("__"):
            continue
        name = f"src/dntm/{path.name}" + ("/" if path.is_dir() else "")
        assert f"`{name}`" in rows or path.name == "py.typed", name


if __name__ == "__main__":
    README.write_text(up_to_date(README.read_text(encoding="utf-8")), encoding="utf-8")
