"""docs/departures.md has one row for every module that declares a departure from the paper."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_modules_and_page_name_the_same_departures() -> None:
    source = ROOT / "src" / "dntm"
    page = (ROOT / "docs" / "departures.md").read_text(encoding="utf-8")

    modules = [
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(r"^Departure: ", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]

    rows = re.findall(r"^\| `([\w/]+\.py)` \|", page, re.MULTILINE)
    assert sorted(rows) == sorted(modules)
