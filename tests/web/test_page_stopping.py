"""Readings and questions that do not come to their end, in a real browser."""

from contextlib import suppress

from playwright.sync_api import Error, Page, Route, expect

from tests.web.asking import until
from tests.web.tiny import PausingReader
from tests.web.using import paste, read, view


def test_a_reading_can_be_stopped(slow_page: Page, pausing: PausingReader) -> None:
    page = slow_page
    pausing.gate.clear()
    paste(page)
    expect(page.locator(".sentence")).to_have_count(1)
    until(lambda: pausing.steps == 2)

    page.get_by_role("button", name="Stop").click()

    expect(page.get_by_role("status")).to_have_text("Stopped after 1 of 4 sentences.")
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    expect(page.get_by_role("button", name="Read", exact=True)).to_be_focused()
    view(page, "Map")
    expect(page.get_by_role("img", name="Path of Marta")).to_be_visible()
    pausing.gate.set()
    page.wait_for_timeout(500)
    assert page.locator(".sentence").count() == 1


def test_an_answer_that_is_cut_off_is_reported(page: Page) -> None:
    def half(route: Route) -> None:
        response = route.fetch()
        lines = response.text().splitlines(keepends=True)
        route.fulfill(response=response, body="".join(lines[:3]))

    page.route("**/api/read", half)

    paste(page)

    expect(page.get_by_role("alert")).to_have_text(
        "The connection was lost before the reading was complete."
    )
    expect(page.get_by_role("status")).to_have_text("Stopped after 2 of 4 sentences.")
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()


def test_predictions_of_an_earlier_reading_are_not_shown(page: Page) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/predict", hold)  # no question reaches the server
    read(page)
    page.locator("[data-s='3'][data-p='2']").click()
    expect(page.locator("#content")).to_contain_text("Actual word")

    read(page, "A ferry left.")
    with suppress(Error):  # the page may have given it up
        held[0].continue_()
    page.wait_for_timeout(500)

    expect(page.locator("#answer")).to_be_hidden()
    expect(page.get_by_role("alert")).to_be_empty()


def test_predictions_use_the_entities_of_the_reading(page: Page) -> None:
    read(page)
    page.locator("#entities").select_option("names")

    with page.expect_request("**/api/predict") as asked:
        page.locator("[data-s='3'][data-p='2']").click()

    assert '"entities":"both"' in (asked.value.post_data or "")
