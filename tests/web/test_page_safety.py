"""What must not happen on the page, whatever is typed into it, in a real browser."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page, expect

from tests.web.conftest import MILLISECONDS
from tests.web.tiny import TEXT
from tests.web.using import DONE, paste, read, trail, view

SCRIPT = '<script>document.title = "owned"</script><img src=x onerror="document.title=\'owned\'">'


def test_the_export_works_without_a_server(page: Page, browser: Browser, tmp_path: Path) -> None:
    read(page, f"{TEXT} </script>{SCRIPT} $& <!-- <script>")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as HTML").click()
    saved.value.save_as(tmp_path / "reading.html")
    context = browser.new_context(offline=True)
    context.set_default_timeout(MILLISECONDS)
    alone = context.new_page()
    problems: list[str] = []
    alone.on("pageerror", lambda error: problems.append(str(error)))
    alone.on("console", lambda said: problems.append(said.text))
    alone.on("request", lambda request: problems.append(request.url))

    alone.goto((tmp_path / "reading.html").as_uri())
    alone.locator(".token.entity", has_text="zorrel").first.click()
    view(alone, "Predictions")

    expect(alone.locator(".candidates")).to_have_count(2)
    asked = page.locator("[data-s='1'][data-p='1']")
    asked.click()
    expect(page.locator(".candidates")).to_have_count(2)
    kept = page.locator(".candidates").all_inner_texts()
    alone.locator("[data-s='1'][data-p='1']").click()
    expect(alone.locator("#content")).to_contain_text("“day”")
    assert alone.locator(".candidates").all_inner_texts() == kept
    alone.locator(".token.entity", has_text="zorrel").first.click()
    expect(alone.locator("#text")).to_contain_text("$")
    assert alone.locator(".token").all_inner_texts() == page.locator(".token").all_inner_texts()
    view(alone, "Guesses")
    assert trail(alone) == ["3", "4"]
    view(alone, "Map")
    expect(alone.get_by_role("img", name="Path of zorrel")).to_be_visible()
    assert alone.title() == "dntm reader"
    assert [p for p in problems if not p.startswith(("file:", "data:"))] == []
    context.close()


def test_script_typed_into_any_field_stays_text(page: Page, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(f"Old {SCRIPT} Marta. {SCRIPT} zorrel Marta zorrel.")
    page.get_by_label("Open a file").set_input_files(tmp_path / "x.txt")
    expect(page.get_by_role("status")).to_have_text(DONE)
    read_from_file = page.locator("#text").inner_text()
    read(page, f"Marta saw {SCRIPT}. Then Marta left {SCRIPT}.")
    page.locator("[data-row='0'] .token:visible").last.click()
    expect(page.locator("#content")).not_to_be_empty()

    page.get_by_role("button", name="Edit sentence 1").click(force=True)
    page.get_by_label("Sentence 1", exact=True).fill(SCRIPT)
    page.get_by_role("button", name="Read from here").click()
    expect(page.locator("#content ins")).to_have_text(SCRIPT)
    expect(page.get_by_role("status")).to_have_text(DONE)

    assert "onerror" in read_from_file
    expect(page.locator("#text")).to_contain_text("onerror")
    assert page.locator("#result script, #result img").count() == 0
    assert page.title() == "dntm reader"


def test_errors_are_shown(page: Page) -> None:
    paste(page, " ")
    expect(page.get_by_role("alert")).to_contain_text("The text is empty")

    paste(page, "so " * 9_000)
    expect(page.get_by_role("alert")).to_contain_text("the limit is 20,000")

    read(page)
    expect(page.get_by_role("alert")).to_be_empty()
    page.route("**/api/predict", lambda route: route.fulfill(status=422, json={"message": "no"}))
    page.locator("[data-s='3'][data-p='2']").click()
    expect(page.locator("#content .problem")).to_have_text("No.")


def test_the_browser_itself_refuses_to_make_markup_of_a_string(
    browser: Browser, address: str
) -> None:
    context = browser.new_context()
    context.set_default_timeout(MILLISECONDS)
    page = context.new_page()
    page.goto(address)

    with pytest.raises(Error, match="TrustedHTML"):
        page.evaluate("document.body.innerHTML = '<b>x</b>'")

    context.close()
