"""Reading a text on the page, in a real browser."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dntm.reader.reader import Reader
from tests.web.tiny import TEXT, PausingReader
from tests.web.using import chip, paste, read, trail


def test_a_pasted_text_streams_in_sentence_by_sentence(page: Page, pausing: PausingReader) -> None:
    pausing.gate.clear()

    paste(page)

    expect(page.locator(".sentence")).to_have_count(1)
    words = page.locator(".sentence .word").all_inner_texts()
    assert words == ["Old", "Marta", "kept", "the", "ferry", ".", "¶"]
    pausing.gate.set()
    expect(page.locator(".sentence")).to_have_count(4)
    expect(page.get_by_role("status")).to_have_text(re.compile("Read 4 of 4 sentences"))


def test_an_example_is_read_when_it_is_chosen(page: Page) -> None:
    page.get_by_label("Example").select_option(label="A match report: Fenholt against Rusk")

    expect(page.get_by_role("status")).to_contain_text("of 13 sentences")
    expect(page.get_by_role("group", name="Entities")).to_contain_text("Adeyo")


def test_a_file_is_opened_and_read(page: Page, tmp_path: Path) -> None:
    (tmp_path / "ferry.txt").write_text("Old Marta left.\n\nThen Marta came.", encoding="utf-8")

    page.get_by_label("Open a file").set_input_files(tmp_path / "ferry.txt")

    expect(page.locator(".sentence")).to_have_count(2)
    expect(page.locator("[data-row='1']")).to_contain_text("Then")


def test_a_file_in_another_encoding_is_refused(page: Page, tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes(b"Zo\xeb kept a caf\xe9.")

    page.get_by_label("Open a file").set_input_files(tmp_path / "latin.txt")

    expect(page.get_by_role("alert")).to_have_text("latin.txt is no text in UTF-8.")
    expect(page.locator(".sentence")).to_have_count(0)


def test_on_a_phone_the_answer_comes_into_view(page: Page) -> None:
    page.set_viewport_size({"width": 375, "height": 740})
    read(page)

    page.locator("[data-row='0'] .token").first.click()

    expect(page.locator("#expected")).to_be_in_viewport()


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


def test_predictions_of_both_models_stand_side_by_side(page: Page, reader: Reader) -> None:
    read(page)

    page.locator("[data-s='2'][data-p='2']").click()

    sentences = list(reader.stream(TEXT))
    assert sentences[1].position is not None
    expected = reader.predictions(sentences[1].position, ["The", 2], 8)
    columns = page.locator(".candidates")
    expect(columns).to_have_count(2)
    for column, candidates in enumerate((expected.dynamic, expected.static)):
        shown = columns.nth(column).locator("li")
        expect(shown).to_have_count(8)
        shares = [(c.probability, c.static_probability)[column] for c in candidates]
        assert shown.nth(0).locator(".part").inner_text() == f"{100 * shares[0]:.1f} %"
        names = {0: "", 1: "Marta", 2: "zorrel"}  # both stand before the place, no other does
        for row, candidate in zip(shown.all(), candidates, strict=True):
            label = row.locator(".candidate").inner_text().removesuffix(" ✓")
            if candidate.entity:
                name = names.get(candidate.entity, "a new entity")
                assert label == f"{name}{candidate.entity}"
            elif candidate.word not in ("<eos>", "<unk>"):
                assert label == candidate.word
    expect(page.locator("#expected")).to_contain_text("In its place stands “slept”")


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("[data-s='0'][data-p='1']", ["a new entity", "a new entity"]),
        ("[data-s='0'][data-p='2']", ["Marta", "a new entity"]),
        ("[data-s='3'][data-p='0']", ["Marta", "zorrel"]),
    ],
)
def test_an_entity_is_not_named_before_its_first_mention(
    page: Page, place: str, names: list[str]
) -> None:
    expected = [
        {"word": f"[{e}]", "entity": e, "probability": 0.1, "static_probability": 0.1}
        for e in (1, 2)
    ]
    answer = {"dynamic": expected, "static": expected}
    page.route("**/api/predict", lambda route: route.fulfill(json=answer))
    read(page)

    page.locator(place).click()

    expect(page.locator(".candidates").first.locator(".word")).to_have_text(names)


def test_words_are_widely_spaced_only_where_numbers_stand_below_them(page: Page) -> None:
    read(page)
    words = page.locator(".words").first
    height = "node => parseFloat(getComputedStyle(node).lineHeight)"
    plain = words.evaluate(height)

    page.get_by_label("show bits").check()

    assert words.evaluate(height) > 1.3 * plain


def test_words_came_nearer_in_one_space_alone(page: Page) -> None:
    read(page)
    expect(page.locator(".moved").first).to_be_visible()

    page.get_by_label("as it is predicted").check(force=True)

    expect(page.locator(".moved")).to_have_count(0)
