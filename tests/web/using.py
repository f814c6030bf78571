"""Actions on the page."""

from playwright.sync_api import Locator, Page, expect

from tests.web.tiny import TEXT


def paste(page: Page, text: str = TEXT) -> None:
    """Paste a text and start reading."""
    page.get_by_label("Text", exact=True).fill(text)
    page.get_by_role("button", name="Read", exact=True).click()


def read(page: Page, text: str = TEXT) -> None:
    """Paste a text and wait for the end of the reading."""
    paste(page, text)
    expect(page.get_by_role("status")).to_contain_text("sentences in")


def chip(page: Page, name: str) -> Locator:
    return page.get_by_role("group", name="Tracked words").get_by_role("button", name=name)


def unfold(page: Page) -> None:
    """Open all collapsed sections."""
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


def trail(page: Page) -> list[str]:
    """The sentences, from 1, that mention the chosen entity."""
    return page.locator(".trail > li > .go").all_inner_texts()
