import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dntm.corpus.dataset import Dataset
from dntm.corpus.dataset_builder import BuildConfig, ReadConfig, build_dataset
from dntm.corpus.document import InputError


def line(name: str, sentences: list[list[str]], *chains: list[list[int]]) -> str:
    return json.dumps({"doc_key": name, "sentences": sentences, "clusters": chains}) + "\n"


def corpus(folder: Path) -> Path:
    folder.mkdir()
    (folder / "train.jsonl").write_text(
        line("a", [["Ann", "sang"], ["she", "left"], ["Bo", "hid"], ["he", "ran"]])
        + line("b", [["Ann", "met", "Bo"], ["she", "ran"]], [[0, 0], [3, 3]], [[2, 2]])
    )
    (folder / "dev.jsonl").write_text(line("c", [["Cy", "sang"], ["he", "hid"]], [[0, 0], [2, 2]]))
    (folder / "test.jsonl").write_text(line("d", [["Di", "dozed"]]))
    return folder


def build(
    source: Path, target: Path, skipped: list[str] | None = None, **settings: Any
) -> dict[str, Any]:
    reading = ReadConfig(on_error="stop" if skipped is None else "skip")
    config = BuildConfig(**{"max_entities": 5, **settings})
    return build_dataset(str(source), target, reading, config, skipped=skipped)


def test_a_dataset_opens_as_it_was_built(tmp_path: Path) -> None:
    build(corpus(tmp_path / "c"), tmp_path / "out")

    dataset = Dataset.open(tmp_path / "out")

    (b,) = (d for d in dataset.documents("train") if d.name == "b")
    assert b.sentences == [[1, "met", "Bo"], [1, "ran"]]
    assert b.surfaces == [["Ann"], ["she"]]
    assert dataset.splits == ["train", "dev", "test"]


def test_building_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    source = corpus(tmp_path / "c")

    build(source, tmp_path / "one")
    build(source, tmp_path / "two")

    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    )
    expected = "counts.txt dataset.json dev.jsonl test.jsonl train.jsonl vocab.txt"
    assert sorted(one) == expected.split()
    assert one == two


def test_documents_above_the_limit_are_left_out_and_counted(tmp_path: Path) -> None:
    source = tmp_path / "train.jsonl"
    source.write_text(
        line("a", [["x", "y", "x", "y"]], [[0, 0], [2, 2]], [[1, 1], [3, 3]])
        + line("b", [["x", "y", "z"]], [[0, 0], [1, 1]])
    )

    information = build(source, tmp_path / "out", max_entities=1)

    assert information["left_out"]["too_many_entities"] == 1
    assert information["counts"]["train"]["documents"] == 1


def test_parts_of_one_document_stay_in_one_split(tmp_path: Path) -> None:
    source = tmp_path / "all.jsonl"
    source.write_text("".join(line(f"d{i}", [["a", "b"]] * 9) for i in range(10)))

    build(source, tmp_path / "out", max_sentences=2)

    dataset = Dataset.open(tmp_path / "out")
    by_split = {
        split: {d.name.split("/")[0] for d in dataset.documents(split)} for split in dataset.splits
    }
    assert [len(names) for names in by_split.values()] == [8, 1, 1]
    assert len(set().union(*by_split.values())) == 10


def test_unknown_words_of_plain_text_become_entities(tmp_path: Path) -> None:
    folder = tmp_path / "train"
    folder.mkdir()
    (folder / "a.txt").write_text("the grell sat . the grell ate the nut . the cat sat . " * 1)
    (folder / "b.txt").write_text("the cat ate the nut . the cat sat . " * 3)

    build(tmp_path, tmp_path / "out", vocabulary_size=5 + 3 + 6, entities=("unknown",))

    dataset = Dataset.open(tmp_path / "out")
    first = next(d for d in dataset.documents("train") if d.name == "train/a")
    assert first.sentences[0][:6] == ["the", 1, "sat", ".", "the", 1]


def test_the_vocabulary_of_another_dataset_is_taken_as_it_is(tmp_path: Path) -> None:
    build(corpus(tmp_path / "c"), tmp_path / "one", max_entities=2)
    source = tmp_path / "all.jsonl"
    mentions = [[[i, i], [i + 3, i + 3]] for i in range(3)]
    source.write_text(
        line("many", [["x", "y", "z", "u", "v", "w"]], *mentions)
        + "".join(line(f"d{i}", [["Ann", "sang", "loud"], ["she", "ran"]]) for i in range(9))
    )

    built = build(source, tmp_path / "two", vocabulary_of=tmp_path / "one")

    one, two = (Dataset.open(tmp_path / name).vocabulary for name in ("one", "two"))
    assert two == one
    assert "loud" not in two.words
    assert built["entities"] == 2
    assert built["left_out"]["too_many_entities"] == 1
    assert built["settings"]["vocabulary_of"] == str(tmp_path / "one")


BROKEN = {
    "bytes": (b'{"sentences": [["\xff"]], "clusters": []}\n', "is not UTF-8"),
    "gzip": (gzip.compress(line("z", [["a"]] * 50).encode())[:-9], "broken gzip"),
    "empty": (b'{"sentences": [], "clusters": []}\n', "is empty"),
    "nothing": (b"\n", "an empty file"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_malformed_input_ends_the_build_or_is_left_out_and_counted(
    tmp_path: Path, kind: str
) -> None:
    content, problem = BROKEN[kind]
    source, skipped = corpus(tmp_path / "c"), list[str]()
    (source / "train-2.jsonl").write_bytes(content)

    with pytest.raises(InputError, match=problem):
        build(source, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["c"]

    information = build(source, tmp_path / "out", skipped)
    assert len(skipped) == information["left_out"]["malformed"] == 1
    assert problem in skipped[0]
    assert information["counts"]["train"]["documents"] == 2


def test_a_dataset_of_the_same_name_is_not_overwritten_by_accident(tmp_path: Path) -> None:
    source = corpus(tmp_path / "c")
    build(source, tmp_path / "out")

    with pytest.raises(ValueError, match="--overwrite"):
        build(source, tmp_path / "out")


def test_few_entities_with_very_many_mentions_are_warned_about(tmp_path: Path) -> None:
    source = tmp_path / "train.jsonl"
    words = [["Ann", "left"]] * 10
    mentions = [[2 * i, 2 * i] for i in range(10)]

    source.write_text(line("a", words, mentions))
    suspicious = build(source, tmp_path / "types")["warnings"]
    source.write_text(line("a", words, mentions[:5], mentions[5:]))
    plausible = build(source, tmp_path / "chains")["warnings"]

    [warning] = suspicious
    assert warning.startswith("train has 1.0 entities per document with 10.0 mentions")
    assert not plausible
