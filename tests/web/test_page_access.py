"""The page without a mouse, on a phone, in the dark: in a real browser."""

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.web.conftest import MILLISECONDS
from tests.web.tiny import TEXT
from tests.web.using import DONE, read, shade, view


def test_everything_can_be_reached_with_the_keyboard(page: Page) -> None:
    page.get_by_label("Text", exact=True).fill(TEXT)
    expect(page.get_by_role("button", name="Read", exact=True)).to_be_enabled()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text(DONE)

    page.locator(".token[tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "End", "ArrowLeft", "Home", "ArrowUp"):
        page.keyboard.press(key)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")

    expect(page.locator("[data-s='0'][data-p='1']")).to_be_focused()
    expect(page.locator("[data-s='0'][data-p='1']")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#answer-title")).to_have_text("Marta")
    page.get_by_role("radio", name="Guesses").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("img", name="Path of Marta")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".candidates")).to_have_count(2)
    assert page.locator("#text [tabindex='0']").count() == 3  # a word and two buttons
    page.keyboard.press("Escape")
    expect(page.locator("[data-s='0'][data-p='1']")).to_be_focused()
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#slider-label")).to_have_text("After sentence 3 of 4")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(browser: Browser, address: str, width: int, scheme: Any) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 850}, color_scheme=scheme, reduced_motion="reduce"
    )
    context.set_default_timeout(MILLISECONDS)
    page = context.new_page()
    page.goto(address)
    findings: list[str] = []
    widest = []

    def look(where: str) -> None:
        found = Axe().run(page).response["violations"]
        findings.extend(f"{where}: {v['id']} {v['nodes'][0]['html']}" for v in found)
        widest.append(page.evaluate("document.documentElement.scrollWidth"))

    expect(page.get_by_role("status")).to_have_text(DONE)
    look("landing")
    page.get_by_role("button", name="Try it").click()
    expect(page.locator(".compare")).to_be_visible()
    look("edit")
    read(page)
    page.locator(".token.entity").nth(2).click()
    look("guesses")
    view(page, "Map")
    look("map")
    view(page, "Predictions")
    expect(page.locator(".candidates")).to_have_count(2)
    look("predictions")
    shade(page, "difference")
    page.get_by_label("show numbers").check()
    page.get_by_role("slider").fill("2")
    page.get_by_role("button", name="Edit sentence 4").click(force=True)
    look("editing")

    context.close()
    assert not findings
    assert max(widest) <= width
