import re

import pytest

from dntm.web.app import page_files

PAGE = {name: bytes(file.body).decode() for name, file in page_files().items()}


def test_every_file_that_the_page_names_is_there() -> None:
    named = re.findall(r'(?:href|src)="/static/([^"]+)"', PAGE["index.html"])
    imported = [name for text in PAGE.values() for name in re.findall(r'from "\./([^"]+)"', text)]

    assert {"app.js", "style.css"} <= {*named}
    assert {*named, *imported} <= set(PAGE)


@pytest.mark.parametrize("name", sorted(PAGE))
def test_nothing_comes_from_another_host(name: str) -> None:
    addresses = re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", PAGE[name])

    assert set(addresses) <= {"http://www.w3.org"}


@pytest.mark.parametrize("name", [name for name in PAGE if name.endswith(".js")])
def test_no_script_makes_markup_of_text(name: str) -> None:
    unsafe = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\("

    assert not re.search(unsafe, PAGE[name])


def test_the_export_is_one_file_with_one_slot_for_the_reading() -> None:
    page = PAGE["export.html"]

    assert page.count('id="reading-data"></script>') == 1
    assert page.index('id="reading-data">') == page.index('id="reading-data"></script>')
    assert "/static/" not in page.replace('"/static/export.html"', "")
    assert not re.search(r"^(import|export) ", page, re.MULTILINE)
