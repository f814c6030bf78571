"""Changing a text on the page, in a real browser."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from dntm.reader.reader import Reader
from dntm.web.app import examples
from tests.web.tiny import TEXT
from tests.web.using import read


def test_an_edit_can_be_cancelled_with_the_keyboard(page: Page) -> None:
    read(page)
    page.get_by_role("button", name="Edit sentence 2").focus()

    page.keyboard.press("Enter")
    page.keyboard.type("nonsense")
    page.keyboard.press("Escape")

    expect(page.locator("#text")).not_to_contain_text("nonsense")
    expect(page.get_by_role("button", name="Edit sentence 2")).to_be_focused()


def test_one_sentence_is_edited_at_a_time_and_no_change_is_lost(page: Page) -> None:
    read(page)
    editor = page.get_by_role("textbox", name="Sentence")
    page.get_by_role("button", name="Edit sentence 2").click(force=True)
    page.get_by_role("button", name="Edit sentence 3").click(force=True)
    expect(editor).to_have_count(1)
    expect(editor).to_have_value("The zorrel slept.")

    editor.fill("The zorrel sat.")
    page.get_by_role("button", name="Edit sentence 1").click(force=True)

    expect(editor).to_have_count(1)
    expect(editor).to_have_value("The zorrel sat.")
    expect(page.get_by_role("status")).to_contain_text("Sentence 3 is being edited")


def guesses(reader: Reader, text: str, entity: int) -> str:
    *_, (_, state) = reader.read(text, entities=("names", "unknown")).trail(entity)
    return ", ".join(word.word for word in state.predicted_words[:3])


def test_guesses_before_and_after_an_edit_are_compared(page: Page, reader: Reader) -> None:
    read(page)
    expect(page.locator(".compare")).to_have_count(0)
    kept = page.locator("[data-row='0'] .token").first.get_attribute("aria-label")

    page.get_by_role("button", name="Edit sentence 4").click()
    page.get_by_label("Sentence 4", exact=True).fill("A zorrel barked at night.")
    page.get_by_role("button", name="Read from here").click()
    expect(page.get_by_role("status")).to_contain_text("Read again from sentence 4")

    assert page.locator("[data-row='0'] .token").first.get_attribute("aria-label") == kept
    expect(page.locator(".sentence")).to_have_count(4)
    expect(page.locator("#content del")).to_have_text("A zorrel sees Marta.")
    expect(page.locator("#content ins")).to_have_text("A zorrel barked at night.")
    row = page.locator(".compare tbody tr", has_text="zorrel")
    edited = TEXT.replace("sees Marta", "barked at night")
    before, after = guesses(reader, TEXT, 2), guesses(reader, edited, 2)
    assert before != after
    expect(row.locator("td").nth(0)).to_contain_text(before)
    expect(row.locator("td").nth(1)).to_contain_text(after)
    page.keyboard.press("Tab")
    expect(page.locator("[data-row='3'] .go")).to_be_focused()
    page.get_by_role("button", name="Close").click()
    expect(page.locator(".compare")).to_have_count(0)
    expect(page.get_by_role("button", name="Edit sentence 4")).to_be_focused()


def test_an_example_offers_an_edit_to_try(address: str, visit: Callable[..., Page]) -> None:
    page = visit(address)
    read(page)
    page.get_by_role("group", name="Examples").get_by_role("button").first.click()
    sentence, instead = examples()[0].edit
    offer = page.get_by_role("button", name="Try it")
    expect(offer).to_contain_text(instead)

    offer.click()

    expect(page.locator("#content ins")).to_have_text(instead)
    row = page.locator(f"[data-row='{sentence - 1}'] .word:visible")
    assert "".join(row.all_inner_texts()) == instead.replace(" ", "")
    expect(offer).to_have_count(0)
    expect(page.get_by_label("Text", exact=True)).to_have_value(TEXT)  # one's own text is kept
