"""Runs on the command line: settings (a recipe, then a YAML file, then options), who shows."""

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from dntm.training.config import merged

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def recipe_and_file(
    arguments: list[str],
    prog: str,
    recipes: Sequence[str],
    usual: str,
    from_recipe: Callable[[str], T],
) -> T:
    """The defaults of all options: what `--recipe` and `--config` among the arguments say."""
    first = argparse.ArgumentParser(prog=prog, add_help=False, allow_abbrev=False)
    first.add_argument("--recipe", choices=sorted(recipes), default=usual)
    first.add_argument("--config", type=Path)
    given, _ = first.parse_known_args(arguments)
    default = from_recipe(given.recipe)
    if given.config:
        default = merged(default, read_yaml(given.config), str(given.config))
    return default


def shows() -> bool:
    """Whether this process shows and prints: of several under torchrun, the first."""
    return os.environ.get("RANK", "0") == "0"


def read_yaml(path: Path) -> dict[str, Any]:
    """The settings of a YAML file."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path}: expected settings such as 'seed: 1'")
    return values
