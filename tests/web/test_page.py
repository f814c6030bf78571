"""The page as a person uses it, in a real browser."""

import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Error, Locator, Page, expect, sync_playwright

from dntm.reader.reader import Reader
from dntm.reader.reading import SentenceReading
from dntm.web.app import create_app
from tests.web.tiny import TEXT, served

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium on this machine")

SCRIPT = '<script>document.title = "owned"</script><img src=x onerror="document.title=\'owned\'">'


class PausingReader(Reader):
    """Waits before every sentence until it may go on."""

    gate = threading.Event()

    def stream(self, *text: Any, **options: Any) -> Iterator[SentenceReading]:
        for sentence in super().stream(*text, **options):
            if sentence.index:
                self.gate.wait(20)
            yield sentence


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def pausing(reader: Reader) -> PausingReader:
    return PausingReader(reader.models)


@pytest.fixture(scope="module")
def address(pausing: PausingReader) -> Iterator[str]:
    with served(create_app(pausing)) as where:
        yield where


@pytest.fixture
def page(browser: Browser, address: str, pausing: PausingReader) -> Iterator[Page]:
    """The page, just opened; whatever goes wrong in it fails the test."""
    pausing.gate.set()
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    context.set_default_timeout(15_000)
    page = context.new_page()
    problems: list[str] = []
    hosts: set[str] = set()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.on("request", lambda request: hosts.add(re.sub(r"(?<=\w)/.*", "", request.url)))
    page.goto(address)
    yield page
    context.close()
    assert not [problem for problem in problems if "status of 4" not in problem]
    assert {host for host in hosts if not host.startswith("blob")} == {address}


def paste(page: Page, text: str = TEXT) -> None:
    page.get_by_label("Text", exact=True).fill(text)
    page.get_by_role("button", name="Read", exact=True).click()


def read(page: Page, text: str = TEXT) -> None:
    paste(page, text)
    expect(page.get_by_role("status")).to_contain_text("sentences in")


def chip(page: Page, name: str) -> Locator:
    return page.get_by_role("group", name="Entities").get_by_role("button", name=name)


def trail(page: Page) -> list[str]:
    return page.locator(".trail > li > .go").all_inner_texts()


def test_a_pasted_text_streams_in_sentence_by_sentence(page: Page, pausing: PausingReader) -> None:
    pausing.gate.clear()

    paste(page)

    expect(page.locator(".sentence")).to_have_count(1)
    words = page.locator(".sentence .word").all_inner_texts()
    assert words == ["Old", "Marta", "kept", "the", "ferry", ".", "¶"]
    pausing.gate.set()
    expect(page.locator(".sentence")).to_have_count(4)
    expect(page.get_by_role("status")).to_have_text(re.compile("Read 4 of 4 sentences"))


def test_a_reading_can_be_stopped(page: Page, pausing: PausingReader) -> None:
    pausing.gate.clear()
    paste(page)
    expect(page.locator(".sentence")).to_have_count(1)

    page.get_by_role("button", name="Stop").click()

    expect(page.get_by_role("status")).to_have_text("Stopped.")
    pausing.gate.set()
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    expect(page.locator(".sentence")).to_have_count(1)


def test_an_example_is_read_when_it_is_chosen(page: Page) -> None:
    page.get_by_label("Example").select_option(label="A match report: Fenholt against Rusk")

    expect(page.get_by_role("status")).to_contain_text("of 13 sentences")
    expect(page.get_by_role("group", name="Entities")).to_contain_text("Adeyo")


def test_a_file_is_opened_and_read(page: Page, tmp_path: Path) -> None:
    (tmp_path / "ferry.txt").write_text("Old Marta left.\n\nThen Marta came.", encoding="utf-8")

    page.get_by_label("Open a file").set_input_files(tmp_path / "ferry.txt")

    expect(page.locator(".sentence")).to_have_count(2)
    expect(page.locator("[data-row='1']")).to_contain_text("Then")


def test_a_chosen_entity_shows_its_trail_and_its_map(page: Page) -> None:
    read(page)

    page.locator(".token.entity", has_text="zorrel").first.click()

    assert trail(page) == ["3", "4"]
    expect(page.locator("#trail h3").first).to_contain_text("zorrel")
    expect(page.get_by_role("img", name="Path of zorrel")).to_be_visible()
    assert page.locator("#map .stop").count() == 2
    chip(page, "Marta").click()
    assert trail(page) == ["1", "2", "4"]
    expect(page.locator(".near li")).to_have_count(6)


def test_the_two_spaces_have_nearest_words_of_their_own(page: Page) -> None:
    read(page)
    read_as = page.locator(".near .word").all_inner_texts()

    page.get_by_label("as it is predicted").check(force=True)

    assert page.locator(".near .word").all_inner_texts() != read_as


def test_dragging_the_slider_shows_the_meanings_at_that_sentence(page: Page) -> None:
    read(page)
    chip(page, "Marta").click()
    after_all = page.locator(".near .part").all_inner_texts()
    box = page.get_by_role("slider").bounding_box()
    assert box is not None

    page.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 2, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()

    expect(page.locator("#slider-label")).to_have_text("After sentence 1 of 4")
    assert page.locator(".near .part").all_inner_texts() != after_all
    expect(page.locator("#trail h3 small").first).to_have_text("after its mention in sentence 1")
    expect(page.locator("[data-row='2'] .token").first).to_have_class(re.compile("later"))
    chip(page, "zorrel").click()
    expect(page.locator("#trail")).to_contain_text("has not been mentioned yet")


def test_predictions_of_both_models_stand_side_by_side(page: Page, reader: Reader) -> None:
    read(page)

    page.locator("[data-s='3'][data-p='2']").click()

    *_, before, _ = reader.stream(TEXT)
    assert before.position is not None
    expected = reader.predictions(before.position, ["A", 2], 8)
    columns = page.locator(".candidates")
    expect(columns).to_have_count(2)
    for column, candidates in enumerate((expected.dynamic, expected.static)):
        shown = columns.nth(column).locator("li")
        expect(shown).to_have_count(8)
        shares = [(c.probability, c.static_probability)[column] for c in candidates]
        assert shown.nth(0).locator(".part").inner_text() == f"{100 * shares[0]:.1f} %"
    expect(page.locator("#expected")).to_contain_text("In its place stands “sees”")


def test_the_shade_follows_the_switch(page: Page) -> None:
    read(page)
    token = page.locator("[data-s='3'][data-p='1']")
    page.get_by_label("show bits").check()
    shown = {}

    for mode in ("dynamic", "static", "difference"):
        page.get_by_label(mode, exact=True).check(force=True)
        shown[mode] = float(token.locator(".bits").inner_text().replace("−", "-"))

    assert shown["difference"] == pytest.approx(shown["static"] - shown["dynamic"], abs=0.11)
    label = token.get_attribute("aria-label") or ""
    assert f"dynamic {shown['dynamic']:.1f} bits, static {shown['static']:.1f} bits" in label


def test_after_an_edit_only_what_follows_is_read(page: Page) -> None:
    read(page)
    kept = page.locator("[data-row='0'] .token").first.get_attribute("aria-label")
    page.locator("[data-row='2']").hover()

    page.get_by_role("button", name="Edit sentence 3").click()
    page.get_by_label("Sentence 3", exact=True).fill("The zorrel sat near the river.")
    page.get_by_role("button", name="Read from here").click()

    expect(page.get_by_role("status")).to_contain_text("Read 2 of 4 sentences")
    expect(page.locator("[data-row='2']")).to_contain_text("river")
    assert page.locator("[data-row='0'] .token").first.get_attribute("aria-label") == kept
    expect(page.locator(".sentence")).to_have_count(4)


def test_an_edit_can_be_given_up_with_the_keyboard(page: Page) -> None:
    read(page)
    page.get_by_role("button", name="Edit sentence 2").focus()

    page.keyboard.press("Enter")
    page.keyboard.type("nonsense")
    page.keyboard.press("Escape")

    expect(page.locator("#text")).not_to_contain_text("nonsense")
    expect(page.get_by_role("button", name="Edit sentence 2")).to_be_focused()


def test_everything_can_be_reached_with_the_keyboard(page: Page) -> None:
    page.get_by_label("Text", exact=True).fill(TEXT)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("sentences in")

    page.locator(".token[tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "End", "ArrowLeft", "Home", "ArrowUp"):
        page.keyboard.press(key)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")

    expect(page.locator("[data-s='0'][data-p='1']")).to_be_focused()
    expect(page.locator("[data-s='0'][data-p='1']")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".candidates")).to_have_count(2)
    assert page.locator(".token[tabindex='0']").count() == 1
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#slider-label")).to_have_text("After sentence 3 of 4")


def test_the_export_is_a_page_of_its_own(page: Page, browser: Browser, tmp_path: Path) -> None:
    read(page, f"{TEXT} </script>{SCRIPT} $& <!-- <script>")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as HTML").click()
    saved.value.save_as(tmp_path / "reading.html")
    context = browser.new_context(offline=True)
    alone = context.new_page()
    problems: list[str] = []
    alone.on("pageerror", lambda error: problems.append(str(error)))
    alone.on("console", lambda said: problems.append(said.text))
    alone.on("request", lambda request: problems.append(request.url))

    alone.goto((tmp_path / "reading.html").as_uri())
    alone.locator(".token.entity", has_text="zorrel").first.click()

    expect(alone.locator("#text")).to_contain_text("$")
    assert alone.locator(".token").all_inner_texts() == page.locator(".token").all_inner_texts()
    assert trail(alone) == ["3", "4"]
    expect(alone.get_by_role("img", name="Path of zorrel")).to_be_visible()
    assert alone.title() == "dntm reader"
    assert [p for p in problems if not p.startswith(("file:", "data:"))] == []
    context.close()


def test_script_typed_into_any_field_stays_text(page: Page, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(f"Old {SCRIPT} Marta. {SCRIPT} zorrel Marta zorrel.")
    page.get_by_label("Open a file").set_input_files(tmp_path / "x.txt")
    expect(page.get_by_role("status")).to_contain_text("sentences in")
    read_from_file = page.locator("#text").inner_text()
    page.get_by_text("Text: paste or change it here").click()
    read(page, f"Marta saw {SCRIPT}. Then Marta left {SCRIPT}.")
    page.locator("[data-row='0'] .token").last.click()
    expect(page.locator(".candidates")).to_have_count(2)

    page.get_by_role("button", name="Edit sentence 1").click(force=True)
    page.get_by_label("Sentence 1", exact=True).fill(SCRIPT)
    page.get_by_role("button", name="Read from here").click()
    expect(page.get_by_role("status")).to_contain_text("sentences in")

    assert "onerror" in read_from_file
    expect(page.locator("#text")).to_contain_text("onerror")
    assert page.locator("#result script, #result img").count() == 0
    assert page.title() == "dntm reader"


def test_what_is_wrong_is_said(page: Page) -> None:
    paste(page, " ")
    expect(page.get_by_role("alert")).to_contain_text("the text is empty")

    paste(page, "so " * 9_000)
    expect(page.get_by_role("alert")).to_contain_text("at most 20,000")

    read(page)
    expect(page.get_by_role("alert")).to_be_empty()


def test_the_browser_itself_refuses_to_make_markup_of_a_string(
    browser: Browser, address: str
) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)

    with pytest.raises(Error, match="TrustedHTML"):
        page.evaluate("document.body.innerHTML = '<b>x</b>'")

    context.close()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(browser: Browser, address: str, width: int, scheme: Any) -> None:
    context = browser.new_context(viewport={"width": width, "height": 850}, color_scheme=scheme)
    page = context.new_page()
    page.goto(address)
    findings: list[str] = []
    widest = []

    def look(where: str) -> None:
        page.wait_for_timeout(350)
        found = Axe().run(page).response["violations"]
        findings.extend(f"{where}: {v['id']} {v['nodes'][0]['html']}" for v in found)
        widest.append(page.evaluate("document.documentElement.scrollWidth"))

    look("empty")
    read(page)
    page.locator(".token.entity").nth(2).click()
    expect(page.locator(".candidates")).to_have_count(2)
    look("read")
    page.get_by_label("difference").check(force=True)
    page.get_by_label("show bits").check()
    page.get_by_role("slider").fill("2")
    page.get_by_role("button", name="Edit sentence 4").click(force=True)
    look("editing")

    context.close()
    assert not findings
    assert max(widest) <= width
