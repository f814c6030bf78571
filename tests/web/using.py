"""Actions on the page."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.web.tiny import TEXT

DONE = re.compile(r"^Read .* s\.$")
"""The status after a reading."""


def paste(page: Page, text: str = TEXT) -> None:
    """Paste a text and start reading."""
    page.get_by_label("Text", exact=True).fill(text)
    page.get_by_role("button", name="Read", exact=True).click()


def read(page: Page, text: str = TEXT) -> None:
    """Paste a text and wait for the end of the reading."""
    paste(page, text)
    expect(page.get_by_role("status")).to_have_text(DONE)


def chip(page: Page, name: str) -> Locator:
    return page.get_by_role("group", name="Tracked words").get_by_role("button", name=name)


def view(page: Page, name: str) -> None:
    """Choose what the answer shows: Guesses, Map or Predictions."""
    page.get_by_role("radio", name=name).check(force=True)


def shade(page: Page, name: str) -> None:
    """Choose the surprisal that is shown."""
    page.evaluate("document.querySelector('details').open = true")
    page.get_by_role("radio", name=name, exact=True).check(force=True)


def percent(share: float) -> str:
    """A probability as the page shows it."""
    return f"{100 * share:.{0 if share >= 0.0995 else 1}f}\u00a0%"


def trail(page: Page) -> list[str]:
    """The sentences, from 1, that mention the chosen entity."""
    return page.locator(".trail .go").all_inner_texts()
