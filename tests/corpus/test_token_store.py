import gzip
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dntm.corpus import token_store as building
from dntm.corpus.token_store import StoreConfig, TokenStore, build_store

TEXT = "The dog barked. The cat slept.\nA dog slept.\n\nThe end came late. It came.\n"
SMALL = StoreConfig(min_count=1, held_out=0.0)


def store_of(
    folder: Path, text: str, config: StoreConfig, words: tuple[str, ...] = ()
) -> TokenStore:
    (folder / "a.txt").write_text(text)
    build_store([folder / "a.txt"], folder / "store", config, words=words)
    return TokenStore.open(folder / "store")


def read_back(store: TokenStore) -> list[str]:
    labels = store.vocabulary.labels()
    count = len(store.starts) - 1
    return [" ".join(labels[row] for row in store.sentence(n)) for n in range(count)]


def test_every_sentence_comes_back_and_rare_words_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    whole = store_of(tmp_path, TEXT, SMALL)
    frequent = store_of(tmp_path / "b", TEXT, StoreConfig(min_count=2, held_out=0.0))

    sentences = read_back(whole)
    assert sentences[:2] == ["The dog barked .", "The cat slept ."]
    assert sentences[2:] == ["A dog slept .", "The end came late .", "It came ."]
    assert frequent.vocabulary.words == (".", "The", "came", "dog", "slept")
    assert frequent.counts.tolist() == [6, 0, 0, 5, 3, 2, 2, 2]
    assert read_back(frequent)[0] == "The dog <unk> ."


def test_words_of_a_dataset_have_a_row_whatever_their_count(tmp_path: Path) -> None:
    config = StoreConfig(min_count=3, held_out=0.0)

    store = store_of(tmp_path, TEXT, config, words=("cat", "wug"))

    assert store.vocabulary.words == (".", "The", "cat", "wug")


def test_long_sentences_are_left_out_and_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)

    found = build_store(
        [tmp_path / "a.txt"], tmp_path / "s", StoreConfig(longest=4, min_count=1, held_out=0.0)
    )

    assert (found["sentences"], found["left_out"]) == (4, 1)


def test_gzip_files_are_read_and_the_end_of_each_file_is_held_out(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One two.\n" * 10)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"Three four.\n" * 20))

    build_store(
        [tmp_path / "a.txt", tmp_path / "b.txt.gz"],
        tmp_path / "s",
        StoreConfig(min_count=1, held_out=0.1),
    )

    store = TokenStore.open(tmp_path / "s")
    assert store.train.tolist() == [[0, 9], [10, 28]]
    assert store.held_out.tolist() == [[9, 10], [28, 30]]
    assert len(store.sample_held_out(2)) == 2


def test_the_chunk_size_does_not_change_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "b").mkdir()
    whole = store_of(tmp_path, TEXT, SMALL)
    monkeypatch.setattr(building, "CHUNK", 3)

    chunked = store_of(tmp_path / "b", TEXT, SMALL)

    np.testing.assert_array_equal(whole.tokens, chunked.tokens)
    np.testing.assert_array_equal(whole.counts, chunked.counts)


def test_text_without_a_known_word_or_sentence_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no word of the text occurs 9 times"):
        store_of(tmp_path, TEXT, StoreConfig(min_count=9))
    with pytest.raises(ValueError, match="no sentence of at most 1 words"):
        store_of(tmp_path, TEXT, StoreConfig(longest=1))
    assert not (tmp_path / "store").exists()


SMALL_DISK = """
import subprocess, sys
from pathlib import Path
from dntm.corpus.token_store import StoreConfig, build_store
folder, text = map(Path, sys.argv[1:])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "none", folder], check=True)
print("mounted", flush=True)
try:
    build_store([text], folder / "store", StoreConfig(min_count=1, held_out=0.0))
except OSError as error:
    print(error.strerror, sorted(path.name for path in folder.iterdir()))
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare, no disk of our own")
def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One two three four five six.\n" * 5000)
    (tmp_path / "disk").mkdir()
    # Provisional numbers take 140 kB: there is room for them, not for the rows beside them
    command = [sys.executable, "-c", SMALL_DISK, tmp_path / "disk", tmp_path / "a.txt"]

    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", *map(str, command)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "mounted" not in done.stdout:
        pytest.skip(f"no disk of our own: {done.stderr[-200:]}")

    assert done.returncode == 0, done.returncode
    assert done.stdout.splitlines()[1] == "No space left on device []"
