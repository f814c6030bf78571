import json
from pathlib import Path

import pytest

from dntm.corpus.catalog import split_of_file, splits_by_fraction, splits_by_ids
from dntm.corpus.dataset import Dataset
from dntm.corpus.dataset_builder import BuildConfig, ReadConfig, build_dataset
from dntm.corpus.document import InputError


@pytest.mark.parametrize(
    ("source", "split"),
    [
        ("data/train/data/english/annotations/nw/wsj/00/wsj_0001.v4_gold_conll", "train"),
        ("development/a_gold_conll", "dev"),
        ("conll-2012-test/x.v9_gold_conll", "test"),
        ("train.english.v4_gold_conll", "train"),
        ("en_gum-corefud-dev.conllu", "dev"),
        ("dev.jsonl.gz", "dev"),
        ("stories/king.txt", None),
    ],
)
def test_folders_and_file_names_tell_the_split(source: str, split: str | None) -> None:
    assert split_of_file(source) == split


def test_headings_and_list_items_are_read_as_splits(tmp_path: Path) -> None:
    path = tmp_path / "splits.md"
    path.write_text("# Splits\n\nSome words.\n\n## Dev\n\n  * A_b\n  * A_c\n\n## test2\n\n * X\n")

    splits = splits_by_ids(path)

    assert splits == {"A_b": "dev", "A_c": "dev", "X": "test2"}


def test_a_folder_of_id_files_and_a_file_of_pairs_are_read(tmp_path: Path) -> None:
    (tmp_path / "train.ids").write_text("a\nb\n")
    (tmp_path / "dev.ids").write_text("c\n")
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("a\ttest\nc\tvalidation\n")

    assert splits_by_ids(tmp_path) == {"a": "train", "b": "train", "c": "dev"}
    assert splits_by_ids(pairs) == {"a": "test", "c": "dev"}


def test_a_document_in_two_splits_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.ids").write_text("a\n")
    (tmp_path / "dev.ids").write_text("b\na\n")

    with pytest.raises(InputError, match=r"dev.ids, line 2: 'a' is in train and in dev"):
        splits_by_ids(tmp_path)


def test_a_malformed_list_of_ids_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    path.write_text("a train\nb nowhere\n")

    with pytest.raises(InputError, match="line 2: found 'b nowhere'"):
        splits_by_ids(path)


def test_a_fraction_is_seeded_exact_and_independent_of_order() -> None:
    names = [f"d{i}" for i in range(50)]

    first = splits_by_fraction(names, (0.8, 0.1, 0.1), seed=3)

    assert first == splits_by_fraction(reversed(names), (0.8, 0.1, 0.1), seed=3)
    assert first != splits_by_fraction(names, (0.8, 0.1, 0.1), seed=4)
    splits = list(first.values())
    assert [splits.count(s) for s in ("train", "dev", "test")] == [40, 5, 5]


def listed(folder: Path, *, test: str = "") -> Path:
    """Twenty documents of train and two of dev, as JSON lines and as lists of ids."""
    folder.mkdir()
    names = [f"d{i}" for i in range(22)]
    lines = (json.dumps({"doc_key": name, "sentences": [["a"]], "clusters": []}) for name in names)
    (folder / "all.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "train.ids").write_text("\n".join(names[:20]))
    (folder / "dev.ids").write_text("\n".join(names[20:]))
    (folder / "test.ids").write_text(test)
    return folder


def test_dev_as_test_holds_a_part_of_train_out_for_dev(tmp_path: Path) -> None:
    folder = listed(tmp_path / "c")
    reading = ReadConfig(splits=folder, dev_as_test=True)

    build_dataset(str(folder / "all.jsonl"), tmp_path / "out", reading, BuildConfig())

    dataset = Dataset.open(tmp_path / "out")
    held = {split: [d.name for d in dataset.documents(split)] for split in dataset.splits}
    assert held["test"] == ["d20", "d21"]
    assert len(held["dev"]) == 2
    assert sorted(held["train"] + held["dev"]) == sorted(f"d{i}" for i in range(20))


def test_dev_as_test_is_refused_where_there_is_a_test_split(tmp_path: Path) -> None:
    folder = listed(tmp_path / "c", test="d22")
    lines = (folder / "all.jsonl").read_text()
    lines += '{"doc_key": "d22", "sentences": [["x"]], "clusters": []}\n'
    (folder / "all.jsonl").write_text(lines)

    with pytest.raises(ValueError, match="20 in train, 2 in dev and 1 in test"):
        build_dataset(
            str(folder / "all.jsonl"),
            tmp_path / "out",
            ReadConfig(splits=folder, dev_as_test=True),
            BuildConfig(),
        )
