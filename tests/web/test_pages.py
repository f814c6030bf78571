import re

from dntm.web.app import page_files

PAGE = {name: bytes(file.body).decode() for name, file in page_files().items()}


def test_every_file_that_the_page_names_is_there() -> None:
    named = re.findall(r'(?:href|src)="/static/([^"]+)"', PAGE["index.html"])
    imported = [name for text in PAGE.values() for name in re.findall(r'from "\./([^"]+)"', text)]

    assert {"app.js", "style.css"} <= {*named}
    assert {*named, *imported} <= set(PAGE)


def test_the_export_is_one_file_with_one_slot_for_the_reading() -> None:
    page = PAGE["export.html"]

    assert page.count('id="reading-data"></script>') == 1
    assert page.index('id="reading-data">') == page.index('id="reading-data"></script>')
    assert "/static/" not in page.replace('"/static/export.html"', "")
    assert not re.search(r"^(import|export) ", page, re.MULTILINE)
