"""Settings are checked alike whether they come from a YAML file or from Python."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

import dntm
from dntm.corpus.anonymize import AnonymizeConfig
from dntm.corpus.dataset_builder import BuildConfig
from dntm.settings import merged, read_yaml, settle
from dntm.study.config import StudyConfig
from dntm.training.config import EncoderConfig


@dataclass(frozen=True, kw_only=True)
class Inner:
    kind: Literal["one", "two"] = "one"
    share: float = 0.5

    def __post_init__(self) -> None:
        settle(self)


@dataclass(frozen=True, kw_only=True)
class Outer:
    folder: Path
    files: tuple[Path, ...] = ()
    pair: tuple[int, str] = (1, "a")
    limit: int | None = None
    is_on: bool = False
    inner: Inner = field(default_factory=Inner)

    def __post_init__(self) -> None:
        settle(self)


OUTER = Outer(folder=Path("x"))


def test_values_become_what_their_types_say() -> None:
    values = {"folder": "y", "files": ["a", "b"], "pair": [2, "b"], "inner": {"share": 1}}

    found = merged(OUTER, values, "file")

    assert found == Outer(
        folder=Path("y"), files=(Path("a"), Path("b")), pair=(2, "b"), inner=Inner(share=1.0)
    )
    assert isinstance(found.inner.share, float)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"inner": {"kind": "three"}}, "inner.kind is 'three', expected one of one, two"),
        ({"inner": {"share": "0.5"}}, "inner.share is '0.5', expected a number"),
        ({"inner": {"share": float("nan")}}, "inner.share is nan, expected a number"),
        ({"inner": 3}, "inner is 3, expected settings"),
        ({"limit": True}, "limit is True, expected a whole number"),
        ({"is_on": 1}, "is_on is 1, expected true or false"),
        ({"folder": 5}, "folder is 5, expected a path"),
        ({"folder": None}, "folder is None, expected a path"),
        ({"files": "a"}, "files is 'a', expected a list"),
        ({"pair": [1]}, "pair has 1 items, expected 2"),
        ({1: 2}, "unknown setting 1, expected one of folder"),
        ({None: 2}, "unknown setting None"),
        ({"x" * 10**6: 2}, "unknown setting 'xxx"),
        ({"folder": ["x"] * 10**6}, "folder is list of 1000000, expected a path"),
    ],
)
def test_a_value_that_does_not_fit_is_named_in_few_words(
    values: dict[Any, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=r"^file: ") as error:
        merged(OUTER, values, "file")

    assert message in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    "make",
    [
        lambda: AnonymizeConfig(nested="inner"),  # type: ignore[arg-type]
        lambda: BuildConfig(entities=("chain",)),  # type: ignore[arg-type]
        lambda: EncoderConfig(embedding_dim=24.0),  # type: ignore[arg-type]
        lambda: dntm.TrainConfig(dataset=Path("x"), pretrained=3),  # type: ignore[arg-type]
        lambda: StudyConfig(seeds=("1",)),  # type: ignore[arg-type]
    ],
)
def test_python_refuses_what_yaml_refuses(make: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        make()


@pytest.mark.parametrize(
    "text",
    ["[" * 5000 + "]" * 5000, "a: " + "{b: " * 5000, "a: 2020-13-45", "a: [", "\x00", "5"],
)
def test_a_damaged_yaml_file_is_refused_with_a_short_message(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(text)

    with pytest.raises(ValueError, match=r"x\.yaml") as error:
        read_yaml(tmp_path / "x.yaml")

    assert len(str(error.value)) < 600 + len(str(tmp_path))
