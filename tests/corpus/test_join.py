import json
from pathlib import Path

import pytest

from dntm.corpus.dataset import Dataset, join_datasets
from dntm.corpus.dataset_builder import BuildConfig, ReadConfig, build_dataset


def make(folder: Path, name: str, words: str, *, most: int = 3, **reading: tuple[str, ...]) -> Path:
    lines = [
        json.dumps({"doc_key": f"d{i}", "sentences": [["Ann", *words.split(), "Ann", f"{name}{i}"]],
                    "clusters": [[[0, 0], [1 + len(words.split())] * 2]]})
        for i in range(20)
    ]  # fmt: skip
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    settings = BuildConfig(max_entities=most)
    build_dataset(str(folder / f"{name}.jsonl"), folder / name, ReadConfig(**reading), settings)  # type: ignore[arg-type]
    return folder / name


def test_documents_keep_their_splits_and_words_are_counted_over_all(tmp_path: Path) -> None:
    one, two = make(tmp_path, "one", "saw and saw"), make(tmp_path, "two", "heard and")

    join_datasets([one, two], tmp_path / "all", vocabulary_size=100)

    joined = Dataset.open(tmp_path / "all")
    assert joined.vocabulary.words[:3] == ("and", "saw", "heard")
    trained_on = {d.name.replace("/d", "") for d in joined.documents("train")}
    assert set(joined.vocabulary.words[3:]) == trained_on
    for split in ("train", "dev", "test"):
        expected = [f"one/{d.name}" for d in Dataset.open(one).documents(split)]
        expected += [f"two/{d.name}" for d in Dataset.open(two).documents(split)]
        assert [d.name for d in joined.documents(split)] == expected
    assert set(joined.information["settings"]["joined"]) == {"one", "two"}


def test_fewer_than_two_datasets_or_one_as_target_is_an_error(tmp_path: Path) -> None:
    one, two = make(tmp_path, "one", "saw"), make(tmp_path, "two", "heard")

    with pytest.raises(ValueError, match="expected at least two, with different names"):
        join_datasets([one, one], tmp_path / "all", vocabulary_size=9)
    with pytest.raises(ValueError, match="is one of the datasets to join"):
        join_datasets([one, two], two, vocabulary_size=9, overwrite=True)


def test_the_vocabulary_of_another_dataset_is_taken_as_it_is(tmp_path: Path) -> None:
    one, two = make(tmp_path, "one", "saw"), make(tmp_path, "two", "heard")
    third = make(tmp_path, "third", "went")

    join_datasets([one, two], tmp_path / "all", vocabulary_size=9, vocabulary_of=third)

    joined = Dataset.open(tmp_path / "all")
    assert joined.vocabulary == Dataset.open(third).vocabulary
    assert joined.information["settings"]["vocabulary_of"] == str(third)
    assert {w for d in joined.documents("dev") for s in d.sentences for w in s} >= {"saw", "heard"}


def test_documents_can_be_left_out_by_name(tmp_path: Path) -> None:
    made = Dataset.open(make(tmp_path, "one", "saw", leave_out=("d1*", "d3")))

    names = {d.name for split in ("train", "dev", "test") for d in made.documents(split)}
    assert names == {f"d{i}" for i in (0, 2, 4, 5, 6, 7, 8, 9)}
