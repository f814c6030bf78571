"""Tensors in files: safetensors, with errors that say what is wrong with which file."""

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from dntm.files import follow_umask


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write the file; OSError where the disk does not take it."""
    try:
        save_file(
            {name: value.contiguous() for name, value in tensors.items()},
            path,
            metadata={"format": "pt"},
        )
        follow_umask(path, 0o666)
    except SafetensorError as error:
        raise OSError(f"{path} cannot be written: {error}") from None


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read the file; ValueError where it is damaged."""
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
