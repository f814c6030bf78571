"""Reading a text on the page, in a real browser."""

import copy
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dntm.reader.meaning import confidence_label
from dntm.reader.reader import Reader
from dntm.web.app import create_app
from dntm.web.events import predictions_answer
from tests.reader.test_meaning import naming
from tests.web.tiny import TEXT, PausingReader, served
from tests.web.using import chip, paste, read, trail, unfold


def test_a_pasted_text_streams_in_sentence_by_sentence(
    slow_page: Page, pausing: PausingReader
) -> None:
    page = slow_page
    pausing.gate.clear()

    paste(page)

    expect(page.locator(".sentence")).to_have_count(1)
    words = page.locator(".sentence .word").all_inner_texts()
    assert words == ["Old", "Marta", "kept", "the", "ferry", ".", "end"]
    pausing.gate.set()
    expect(page.locator(".sentence")).to_have_count(4)
    expect(page.get_by_role("status")).to_have_text(re.compile("Read 4 of 4 sentences"))


def test_a_file_is_opened_and_read(page: Page, tmp_path: Path) -> None:
    (tmp_path / "ferry.txt").write_text("Old Marta left.\n\nThen Marta came.", encoding="utf-8")

    page.get_by_label("Open a file").set_input_files(tmp_path / "ferry.txt")

    expect(page.locator(".sentence")).to_have_count(2)
    expect(page.locator("[data-row='1']")).to_contain_text("Then")


def test_a_file_in_another_encoding_is_refused(page: Page, tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes(b"Zo\xeb kept a caf\xe9.")

    page.get_by_label("Open a file").set_input_files(tmp_path / "latin.txt")

    expect(page.get_by_role("alert")).to_have_text("latin.txt is not UTF-8 text.")
    expect(page.locator(".sentence")).to_have_count(0)


def test_the_page_opens_on_an_example_that_reads_itself(
    address: str, visit: Callable[..., Page]
) -> None:
    page = visit(address, "/")

    expect(page.locator("#slider-label")).to_have_text("After sentence 1 of 10")
    expect(page.locator("#slider-label")).to_have_text("After sentence 2 of 10")
    expect(page.locator("[data-row='1']")).to_have_class(re.compile("now"))
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page.get_by_label("Text", exact=True)).to_be_hidden()


def test_each_mention_has_a_line_with_the_best_guesses(page: Page, reader: Reader) -> None:
    read(page)
    whole = reader.read(TEXT, entities=("names", "unknown"))

    chip(page, "Marta").click()

    assert trail(page) == ["1", "2", "4"]
    lines = page.locator(".trail .line").all_inner_texts()
    for shown, (_, state) in zip(lines, whole.trail(1), strict=True):
        times = "1 mention" if state.occurrence == 1 else f"{state.occurrence} mentions"
        words = ", ".join(word.word for word in state.predicted_words[:3])
        assert shown.strip() == f"after {times}: {words}"


def test_a_model_trained_on_hidden_words_shows_its_confidence(
    reader: Reader, visit: Callable[..., Page]
) -> None:
    model = copy.deepcopy(reader.models.dynamic)
    model.terms["naming"] = naming(8.0)
    named = Reader(replace(reader.models, dynamic=model))
    [*_, (_, state)] = named.read(TEXT, entities=("names", "unknown")).trail(1)
    assert state.confidence is not None
    with served(create_app(named)) as address:
        page = visit(address)
        read(page)

        said = chip(page, "Marta").locator(".confidence")

        assert (
            said.inner_text()
            == f"{confidence_label(state.confidence)}, {100 * state.confidence:.0f} %"
        )


@pytest.mark.parametrize("place", ["[data-s='0'][data-p='0']", "[data-s='3'][data-p='1']"])
def test_on_a_phone_a_word_and_its_answer_are_on_the_screen_together(
    page: Page, place: str
) -> None:
    page.set_viewport_size({"width": 375, "height": 740})
    read(page)

    page.locator(place).click()

    expect(page.locator(".candidates")).to_have_count(2)
    expect(page.locator(place)).to_be_in_viewport(ratio=1)
    is_followed = place == "[data-s='3'][data-p='1']"
    answer = chip(page, "zorrel") if is_followed else page.locator("#expected .place")
    expect(answer).to_be_in_viewport(ratio=1)
    word, sheet = page.locator(place).bounding_box(), page.locator("#meaning").bounding_box()
    assert word is not None
    assert sheet is not None
    assert word["y"] + word["height"] <= sheet["y"]


def test_a_chosen_word_shows_its_trail_and_its_map(page: Page) -> None:
    read(page)
    unfold(page)

    page.locator(".token.entity", has_text="zorrel").first.click()

    assert trail(page) == ["3", "4"]
    expect(page.locator("#trail h3").first).to_contain_text("zorrel")
    expect(page.get_by_role("img", name="Path of zorrel")).to_be_visible()
    assert page.locator("#map .stop").count() == 2
    chip(page, "Marta").click()
    assert trail(page) == ["1", "2", "4"]
    expect(page.locator(".near li")).to_have_count(6)


def test_labels_of_the_map_do_not_collide_and_stand_by_the_path(page: Page) -> None:
    read(page, "Old Marta sat. Marta rowed. The Marta left. A Marta came. " * 4)
    unfold(page)
    box = "const b = node.getBBox(); return [b.x, b.y, b.width, b.height];"
    boxes = f"nodes => nodes.map((node) => {{ {box} }})"

    labels = page.locator("#map .label").evaluate_all(boxes)
    stops = page.locator("#map .stop circle").evaluate_all(boxes)

    assert len(labels) > 5
    assert len(stops) == 16
    everything = [*labels, *stops]
    for number, (x, y, wide, high) in enumerate(labels):
        for left, top, width, height in everything[number + 1 :]:
            apart = x + wide <= left or left + width <= x or y + high <= top or top + height <= y
            assert apart
        nearest = min(
            max(abs(x + wide / 2 - a - 8) - wide / 2, abs(y + high / 2 - b - 8))
            for a, b, *_ in stops
        )
        assert nearest < 120


def test_the_slider_shows_the_guesses_after_a_sentence(page: Page) -> None:
    read(page)
    chip(page, "Marta").click()
    box = page.get_by_role("slider").bounding_box()
    assert box is not None

    page.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 2, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()

    expect(page.locator("#slider-label")).to_have_text("After sentence 1 of 4")
    expect(chip(page, "Marta")).to_contain_text("after 1 mention:")
    assert trail(page) == ["1"]
    expect(page.locator("[data-row='2'] .token").first).to_have_class(re.compile("later"))
    expect(chip(page, "zorrel")).to_contain_text("not mentioned yet")


def test_the_shade_follows_the_switch(page: Page) -> None:
    read(page)
    token = page.locator("[data-s='3'][data-p='1']")
    unfold(page)
    page.get_by_label("show numbers").check()
    shown = {}

    names = {"dynamic": "with memory", "static": "without memory", "difference": "difference"}
    for mode, name in names.items():
        page.get_by_label(name, exact=True).check(force=True)
        shown[mode] = float(token.locator(".bits").inner_text().replace("−", "-"))

    assert shown["difference"] == pytest.approx(shown["static"] - shown["dynamic"], abs=0.11)
    label = token.get_attribute("aria-label") or ""
    assert f"{shown['dynamic']:.1f} bits with memory, {shown['static']:.1f} without" in label
    page.get_by_label("off", exact=True).check(force=True)
    assert token.evaluate("node => node.style.getPropertyValue('--shade')") == "0"


def test_predictions_of_both_models_are_shown(page: Page, reader: Reader) -> None:
    read(page)

    page.locator("[data-s='2'][data-p='2']").click()

    sentences = list(reader.stream(TEXT))
    assert sentences[1].position is not None
    found = reader.predictions(sentences[1].position, ["The", 2], len(reader.vocabulary))
    expected = predictions_answer(found, {1, 2}, 8)
    columns = page.locator(".candidates")
    expect(columns).to_have_count(2)
    names = {-1: "a new name or unknown word", 1: "Marta", 2: "zorrel"}
    for column, field in enumerate(("probability", "static_probability")):
        shown = columns.nth(column).locator("li")
        expect(shown).to_have_count(8)
        candidates = expected[("dynamic", "static")[column]]
        for row, candidate in zip(shown.all(), candidates, strict=True):
            label = row.locator(".candidate").inner_text().removesuffix(" ✓")
            assert row.locator(".part").inner_text() == f"{100 * candidate[field]:.1f} %"
            if candidate["word"] not in ("<eos>", "<unk>"):
                assert label == names.get(candidate["entity"], candidate["word"])
    expect(page.locator("#expected")).to_contain_text("Actual word: “slept”")


@pytest.mark.parametrize(
    ("place", "word", "entity", "label"),
    [
        ((2, 1), "", -1, "a new name or unknown word"),
        ((3, 1), "zorrel", 2, "zorrel"),
        ((0, 6), "<eos>", 0, "the end of the sentence"),
        ((2, 0), "the", 0, "the"),
    ],
)
def test_the_actual_word_is_ticked(
    page: Page, place: tuple[int, int], word: str, entity: int, label: str
) -> None:
    shares = {"probability": 0.1, "static_probability": 0.1}
    rows = [{"word": "other", "entity": 0, **shares}, {"word": word, "entity": entity, **shares}]
    answer = {"dynamic": rows, "static": rows}
    page.route("**/api/predict", lambda route: route.fulfill(json=answer))
    read(page)

    page.locator("[data-s='{}'][data-p='{}']".format(*place)).click()

    ticked = page.locator(".candidates").first.locator(".actual .candidate")
    expect(ticked).to_have_count(1)
    assert ticked.inner_text() == f"{label} ✓"


def test_an_unknown_word_is_marked(page: Page) -> None:
    shares = {"probability": 0.1, "static_probability": 0.1}
    rows = [{"word": "<unk>", "entity": 0, **shares}, {"word": "zunk", "entity": 0, **shares}]
    answer = {"dynamic": rows, "static": rows}
    page.route("**/api/predict", lambda route: route.fulfill(json=answer))
    page.locator("#entities").select_option("names")
    read(page, "The zunk left. Marta left.")
    word = page.locator("[data-s='0'][data-p='1']")
    expect(word).to_have_class(re.compile("unknown"))
    expect(page.locator("[data-s='0'][data-p='2']")).not_to_have_class(re.compile("unknown"))

    word.click()

    ticked = page.locator(".candidates").first.locator(".actual .candidate")
    expect(ticked).to_have_text("an unknown word ✓")
    expect(page.locator("#expected")).to_contain_text("“zunk” (unknown to the model)")
