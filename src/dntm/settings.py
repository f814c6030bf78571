"""Settings: frozen dataclasses with checked values. No torch here.

A value must have the type of its field; otherwise the error names the setting, the value and what
was expected. The same check applies to YAML files (`read_yaml`, `merged`) and to dataclasses made
in Python (`settle`).
"""

import dataclasses
import functools
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

import yaml

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def settle(config: "DataclassInstance", **least: int) -> None:
    """Check fields and their minima in `__post_init__`; strings become paths, lists tuples."""
    for name, kind in _kinds(type(config)).items():
        value = typed(kind, getattr(config, name), name)
        object.__setattr__(config, name, value)
        if name in least and value is not None and value < least[name]:
            raise ValueError(f"{name} is {value}, expected at least {least[name]}")


def require(config: object, names: str, holds: Callable[[float], bool], expected: str) -> None:
    """Raise ValueError for the first of these settings that is not None and fails `holds`."""
    for name in names.split():
        if (value := getattr(config, name)) is not None and not holds(value):
            raise ValueError(f"{name} is {value!r:.40}, expected {expected}")


def merged(config: T, values: Mapping[Any, Any], source: str, prefix: str = "") -> T:
    """The settings with the values of a YAML file in place of their own."""
    kinds = _kinds(type(config))
    changes: dict[str, Any] = {}
    for name, value in values.items():
        if name not in kinds:
            full = prefix + name if isinstance(name, str) else name
            raise ValueError(
                f"{source}: unknown setting {shown(full)}, expected one of {', '.join(kinds)}"
            )
        where = f"{source}: {prefix}{name}"
        if dataclasses.is_dataclass(kinds[name]):
            if not isinstance(value, Mapping):
                raise ValueError(f"{where} is {shown(value)}, expected settings")
            changes[name] = merged(getattr(config, name), value, source, f"{prefix}{name}.")
        else:
            changes[name] = typed(kinds[name], value, where)
    try:
        return dataclasses.replace(config, **changes)
    except ValueError as error:
        raise ValueError(f"{source}: {prefix}{error}") from None


def typed(kind: Any, value: Any, where: str) -> Any:
    """The value converted to its type; ValueError if it does not fit."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        fits = any(value == choice and type(value) is type(choice) for choice in parts)
        expected = f"one of {', '.join(map(str, parts))}"
    elif origin in (types.UnionType, typing.Union):
        if value is None and types.NoneType in parts:
            return None
        (kind,) = (part for part in parts if part is not types.NoneType)
        return typed(kind, value, where)
    elif origin is tuple:
        return _tuple(parts, value, where)
    elif kind is Path:
        if isinstance(value, str) and "\0" not in value:
            return Path(value)
        fits, expected = isinstance(value, Path), "a path"
    elif kind is float:
        if type(value) is int and abs(value) < 2**53:
            return float(value)
        fits, expected = isinstance(value, float) and math.isfinite(value), "a number"
    else:
        names = {int: "a whole number", bool: "true or false", str: "text"}
        expected = names.get(kind) or f"{kind.__name__}"
        fits = isinstance(value, kind) and (kind is not int or type(value) is not bool)
    if not fits:
        raise ValueError(f"{where} is {shown(value)}, expected {expected}")
    return value


def read_yaml(path: Path) -> dict[Any, Any]:
    """The settings of a YAML file."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path} is not YAML as expected: {cut(str(error), 300)}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path}: expected settings such as 'seed: 1'")
    return values


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; ValueError if there is none."""
    try:
        found = parse_json(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {cut(str(error), 300)}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} contains {shown(found)}, expected a JSON object")
    return found


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; ValueError, too, if it is nested too deep."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def to_yaml(config: "DataclassInstance") -> str:
    """All settings as YAML, for `read_yaml` and `merged`."""
    return yaml.safe_dump(plain(dataclasses.asdict(config)), sort_keys=False)


def plain(value: Any) -> Any:
    """Settings for JSON and YAML: paths become strings."""
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(item) for item in value)
    return str(value) if isinstance(value, Path) else value


def cut(text: str, most: int = 60) -> str:
    """The first `most` characters of a text."""
    return text if len(text) <= most else text[:most] + "..."


def shown(value: Any) -> str:
    """A value for an error message; only the type and length of a collection."""
    if isinstance(value, (Mapping, list, tuple, set)):
        return f"{type(value).__name__} of {len(value)}"
    return cut(repr(value))


def _tuple(parts: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{where} is {shown(value)}, expected a list")
    if parts[-1] is Ellipsis:
        parts = (parts[0],) * len(value)
    if len(value) != len(parts):
        raise ValueError(f"{where} has {len(value)} items, expected {len(parts)}")
    return tuple(typed(kind, item, where) for kind, item in zip(parts, value, strict=True))


@functools.cache
def _kinds(config: type) -> dict[str, Any]:
    hints = typing.get_type_hints(config)
    return {field.name: hints[field.name] for field in dataclasses.fields(config)}
