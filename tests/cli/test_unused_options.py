"""Options that would have no effect beside the others are errors, and named."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.running import fails

UNUSED = [
    ("train --dataset F --model.heads 2", "--model.heads", "without --model.kind transformer"),
    ("reproduce --list --jobs 9 --output-dir NEW", "--jobs", "with --list"),
    ("reproduce --list --no-estimate --output-dir NEW", "--no-estimate", "with --list"),
    ("train --dataset F --model.entities 9", "--model.entities", "the dataset has its own"),
    ("train --dataset F --model.variant A --model.merging max", "--model.merging", "baseline"),
    (
        "train --dataset F --model.variant=A --model.dropout_context=.1",
        "--model.dropout-context",
        "baseline",
    ),
    (
        "train --dataset F --training.naming-weight 2",
        "--training.naming-weight",
        "without --model.naming",
    ),
    (
        "train --dataset F --training.no-freeze-encoder",
        "--training.no-freeze-encoder",
        "without --pretrained",
    ),
    (
        "pretrain --text F --output-dir NEW --training.subsample 1",
        "--training.subsample",
        "negatives",
    ),
    ("pretrain --text F --output-dir NEW --model.merging max", "--model.merging", "negatives"),
    ("pretrain --text F --output-dir NEW --training.hide .1", "--training.hide", "negatives"),
    (
        "pretrain --recipe naming --text F --output-dir NEW --training.negatives 1",
        "--training.negatives",
        "naming",
    ),
    ("read F --format json --colour always", "--colour", "with --format json"),
    ("read F --entities inline --entities-from first", "--entities-from", "without names"),
    ("continue F --temperature 0 --seed 3", "--seed", "with --temperature 0"),
    ("fill [] --choose entities --candidates 3", "--candidates", "with --choose entities"),
    ("fill [] --entities names", "--entities", "without --history"),
    ("data build F --stories 1 1 1", "--stories", "without storyworld"),
    (
        "data build F --vocabulary-of F --vocabulary-size 99",
        "--vocabulary-size",
        "with --vocabulary-of",
    ),
    ("data build storyworld --limit 1", "--limit", "on storyworld"),
    ("data build storyworld --nested outermost", "--nested", "on storyworld"),
    ("data build storyworld --from F", "--from", "on storyworld"),
    ("data build J --documents blank-line", "--documents blank-line", "on json"),
    ("data build J --text-rules 1", "--text-rules", "on json"),
    ("data build J --splits F --split-by folder", "--splits", "with --split-by folder"),
    ("data build J --splits I --fractions 1 0 0", "--fractions", "by a file of ids"),
    ("data build J --split-by folder --seed 3", "--seed", "by the names of folders"),
    (
        "data join F J --output-dir NEW --vocabulary-of F --vocabulary-size 9",
        "--vocabulary-size",
        "with --voc",
    ),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A text, a corpus of JSON lines, a file of ids, a dataset, and a path where nothing is."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "text.txt").write_text("The cat sat .\n")
    (folder / "train").mkdir()
    (folder / "train" / "a.jsonl").write_text(
        json.dumps({"doc_key": "a", "sentences": [["Ann", "sat"]], "clusters": []}) + "\n"
    )
    (folder / "ids").write_text("a train\n")
    (folder / "dataset").mkdir()
    (folder / "dataset" / "dataset.json").write_text("{}")
    names = {"F": "text.txt", "J": "train", "I": "ids", "D": "dataset", "NEW": "new"}
    return {letter: str(folder / name) for letter, name in names.items()}


@pytest.mark.parametrize(("command", "option", "why"), UNUSED, ids=[c for c, *_ in UNUSED])
def test_an_option_without_effect_is_an_error(  # noqa: PLR0917
    command: str,
    option: str,
    why: str,
    files: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(Path(files["NEW"]).parent)
    said = fails(capsys, *(files.get(word, word) for word in command.split()))

    error = said.splitlines()[-1]
    assert re.match(rf"dntm: error: {re.escape(option)}.* has no effect.*{re.escape(why)}", error)
    assert not Path(files["NEW"]).exists()
