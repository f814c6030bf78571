"""Reading a text on the page, in a real browser."""

import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from dntm.reader.reader import Reader
from dntm.web.app import create_app, examples
from dntm.web.readings import predictions_answer
from tests.reader.test_meaning import with_naming
from tests.web.tiny import TEXT, PausingReader, served
from tests.web.using import chip, paste, percent, read, shade, trail, view


def test_a_pasted_text_streams_in_sentence_by_sentence(
    slow_page: Page, pausing: PausingReader
) -> None:
    page = slow_page
    pausing.gate.clear()

    paste(page)

    expect(page.locator(".sentence")).to_have_count(1)
    words = page.locator(".sentence .word:visible").all_inner_texts()
    assert words == ["Old", "Marta", "kept", "the", "ferry", "."]
    pausing.gate.set()
    expect(page.locator(".sentence")).to_have_count(4)
    expect(page.get_by_role("status")).to_have_text(re.compile(r"^Read 4 sentences in \S+ s\.$"))


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

    expect(page.locator("#slider-label")).to_have_text(re.compile("After sentence 1 of"))
    expect(page.locator("#slider-label")).to_have_text(re.compile("After sentence 2 of"))
    expect(page.locator("[data-row='1']")).to_have_class(re.compile("now"))
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="▶ Play")).to_be_visible()
    expect(page.get_by_label("Text", exact=True)).to_have_value("")
    pressed = page.get_by_role("group", name="Examples").get_by_role("button", pressed=True)
    expect(pressed).to_have_text(examples()[0].word)


def test_above_an_unknown_word_is_the_best_guess_after_its_sentence(
    page: Page, reader: Reader
) -> None:
    read(page)
    whole = reader.read(TEXT, entities=("names", "unknown"))
    above = {
        index: page.locator(f"[data-row='{index}'] .token.new", has_text="Marta").locator(".best")
        for index, _ in whole.trail(1)
    }

    for index, state in whole.trail(1):
        expect(above[index]).to_have_text(state.predicted_words[0].word)
        expect(above[index]).to_be_visible()
    page.get_by_role("slider").fill("1")

    expect(above[0]).to_be_visible()
    expect(above[1]).to_be_hidden()


def test_a_known_name_has_a_guess_above_it_only_when_selected(page: Page) -> None:
    def with_known_names(route: Route) -> None:
        response = route.fetch()
        start, _, rest = response.text().partition("\n")
        start = json.dumps({**json.loads(start), "unknown": [2]})
        route.fulfill(response=response, body=f"{start}\n{rest}")

    page.route("**/api/read", with_known_names)
    read(page)
    guess = page.locator("[data-s='0'][data-p='1'] .best")
    expect(page.locator("[data-s='2'][data-p='1'] .best")).to_be_visible()
    expect(guess).to_be_hidden()

    page.locator("[data-s='0'][data-p='1']").click()

    expect(guess).to_be_visible()


def test_a_model_trained_on_hidden_words_shows_its_confidence(
    reader: Reader, visit: Callable[..., Page]
) -> None:
    named = with_naming(reader, 8.0)
    states = [state for _, state in named.read(TEXT, entities=("names", "unknown")).trail(1)]
    with served(create_app(named)) as address:
        page = visit(address)
        read(page)

        chip(page, "Marta").click()

        shown = page.locator(".trail .confidence").all_inner_texts()
        assert shown == [percent(state.confidence or 0) for state in states]
        expect(page.locator("#content")).to_contain_text(f"with a confidence of {shown[-1]}")


@pytest.mark.parametrize("size", [(1280, 800), (375, 740)])
@pytest.mark.parametrize("place", [(0, 0), (3, 1), (18, 1), (19, 2)])
def test_the_answer_is_next_to_the_selected_word_and_on_the_screen(
    page: Page, size: tuple[int, int], place: tuple[int, int]
) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    read(page, " ".join([TEXT] * 5))
    word = page.locator("[data-s='{}'][data-p='{}']".format(*place))
    is_tracked = place[1] == 1

    with nullcontext() if is_tracked else page.expect_response("**/api/predict"):
        word.click()

    expect(page.locator(".trail" if is_tracked else ".columns")).to_be_visible()
    expect(word).to_be_in_viewport(ratio=1)
    expect(page.locator("#answer")).to_be_in_viewport(ratio=1)
    assert is_uncovered(word)
    near, far = word.bounding_box(), page.locator("#answer").bounding_box()
    assert near is not None
    assert far is not None
    between = far["y"] - (near["y"] + near["height"]), near["y"] - (far["y"] + far["height"])
    assert max(between) < 100  # the rest of the sentence


def test_within_a_very_long_sentence_the_answer_is_below_the_selected_word(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 700})
    read(page, "the ferry left " * 80)
    page.locator("[data-s='0'][data-p='90']").click()

    expect(page.locator(".columns")).to_be_in_viewport(ratio=1)
    expect(page.locator("[data-s='0'][data-p='90']")).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Edit sentence 1").click()
    expect(page.locator("#answer")).to_have_count(1)


def is_uncovered(place: Locator) -> bool:
    """Whether no other element covers its corners."""
    corners = "[[2, 2], [box.width - 2, 2], [2, box.height - 2], [box.width - 2, box.height - 2]]"
    return bool(
        place.evaluate(
            f"""node => {{
                const box = node.getBoundingClientRect();
                return {corners}.every(([x, y]) =>
                    node.contains(document.elementFromPoint(box.x + x, box.y + y)));
            }}"""
        )
    )


def test_on_a_phone_the_sentence_being_played_is_never_covered(
    address: str, visit: Callable[..., Page]
) -> None:
    page = visit(address, "/#own")
    page.set_viewport_size({"width": 390, "height": 500})
    page.emulate_media(reduced_motion="reduce")
    read(page, " ".join([TEXT] * 2))
    page.get_by_role("button", name="▶ Play").click()
    page.locator("[data-row='0']").scroll_into_view_if_needed()

    for sentence in range(1, 8):
        expect(page.locator("#slider-label")).to_have_text(f"After sentence {sentence} of 8")
        row = page.locator(f"[data-row='{sentence - 1}']")
        expect(row).to_be_in_viewport(ratio=1)
        assert is_uncovered(row)


def test_labels_of_the_map_do_not_collide_and_stand_by_the_path(page: Page) -> None:
    read(page, "Old Marta sat. Marta rowed. The Marta left. A Marta came. " * 4)
    view(page, "Map")
    box = "const b = node.getBBox(); return [b.x, b.y, b.width, b.height];"
    boxes = f"nodes => nodes.map((node) => {{ {box} }})"

    labels = page.locator("#content .label").evaluate_all(boxes)
    stops = page.locator("#content .stop circle").evaluate_all(boxes)

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
    assert trail(page) == ["1"]
    expect(page.locator("[data-row='2'] .token").first).to_have_class(re.compile("later"))
    chip(page, "zorrel").click()
    expect(page.locator("#content")).to_have_text("Not mentioned yet.")


def test_the_shade_follows_the_switch(page: Page) -> None:
    read(page)
    token = page.locator("[data-s='3'][data-p='1']")
    shade(page, "with memory")
    page.get_by_label("show numbers").check()
    shown = {}

    names = {"dynamic": "with memory", "static": "without memory", "difference": "difference"}
    for mode, name in names.items():
        shade(page, name)
        shown[mode] = float(token.locator(".bits").inner_text().replace("−", "-"))

    assert shown["difference"] == pytest.approx(shown["static"] - shown["dynamic"], abs=0.11)
    label = token.get_attribute("aria-label") or ""
    assert f"{shown['dynamic']:.1f} bits with memory, {shown['static']:.1f} without" in label
    shade(page, "off")
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
            assert row.locator(".part").inner_text() == percent(candidate[field])
            if candidate["word"] != "<eos>":
                assert label == names.get(candidate["entity"], candidate["word"])
    expect(page.locator("#content")).to_contain_text("Actual word: “slept”")


def predict(page: Page, *rows: tuple[str, int]) -> None:
    """Let the server predict these words and entities."""
    shares = {"probability": 0.1, "static_probability": 0.1}
    found = [{"word": word, "entity": entity, **shares} for word, entity in rows]
    answer = {"dynamic": found, "static": found}
    page.route("**/api/predict", lambda route: route.fulfill(json=answer))


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
    predict(page, ("other", 0), (word, entity))
    read(page)
    view(page, "Predictions")
    shade(page, "with memory")  # shows the ends of sentences

    page.locator("[data-s='{}'][data-p='{}']".format(*place)).click()

    ticked = page.locator(".candidates").first.locator(".actual .candidate")
    expect(ticked).to_have_count(1)
    assert ticked.inner_text() == f"{label} ✓"


def test_an_unknown_word_that_is_not_tracked_is_called_unknown(page: Page) -> None:
    predict(page, ("", -1), ("zunk", 0))
    page.locator("#entities").select_option("names")
    read(page, "The zunk left. Marta left.")

    page.locator("[data-s='0'][data-p='1']").click()

    ticked = page.locator(".candidates").first.locator(".actual .candidate")
    expect(ticked).to_have_text("a new name or unknown word ✓")
    expect(page.locator("#content")).to_contain_text("“zunk” (unknown to the model)")
