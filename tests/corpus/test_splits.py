from pathlib import Path

import pytest

from dntm.corpus.catalog import dev_as_test, split_of_file, splits_by_fraction, splits_by_ids
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


@pytest.mark.parametrize(
    ("files", "read", "problem"),
    [
        ({"train.ids": "a\n", "dev.ids": "b\na\n"}, "", "dev.ids, line 2: 'a' is in train and in"),
        ({"train.ids": "", "dev.ids": ""}, "", "names no document"),
        ({"ids.txt": "a train\nb nowhere\n"}, "ids.txt", "line 2: found 'b nowhere'"),
    ],
)
def test_ids_in_two_splits_in_none_or_in_an_unknown_one_are_an_error(
    tmp_path: Path, files: dict[str, str], read: str, problem: str
) -> None:
    for name, ids in files.items():
        (tmp_path / name).write_text(ids)

    with pytest.raises(InputError, match=problem):
        splits_by_ids(tmp_path / read)


def test_a_fraction_is_seeded_exact_and_independent_of_order() -> None:
    names = [f"d{i}" for i in range(50)]

    first = splits_by_fraction(names, (0.8, 0.1, 0.1), seed=3)

    assert first == splits_by_fraction(reversed(names), (0.8, 0.1, 0.1), seed=3)
    assert first != splits_by_fraction(names, (0.8, 0.1, 0.1), seed=4)
    splits = list(first.values())
    assert [splits.count(s) for s in ("train", "dev", "test")] == [40, 5, 5]


def test_dev_as_test_holds_a_part_of_train_out_for_dev() -> None:
    keys = [(f"d{i}", "all.jsonl") for i in range(22)]

    splits = dev_as_test(keys, ["train"] * 20 + ["dev"] * 2, seed=1)

    assert splits[20:] == ["test", "test"]
    assert (splits.count("train"), splits.count("dev")) == (18, 2)
    with pytest.raises(ValueError, match="20 in train, 1 in dev and 1 in test"):
        dev_as_test(keys, ["train"] * 20 + ["dev", "test"], seed=1)
