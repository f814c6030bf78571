"""Settings that no model could be built from are refused by name."""

from collections.abc import Iterator
from typing import Any

import jaxtyping
import pytest

from dntm.model.config import ModelConfig


@pytest.fixture
def unchecked() -> Iterator[None]:
    """No check of types while the test runs: users have none either."""
    jaxtyping.config.update("jaxtyping_disable", True)  # noqa: FBT003
    yield
    jaxtyping.config.update("jaxtyping_disable", False)  # noqa: FBT003


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden_dim": 0}, "hidden_dim is 0"),
        ({"entities": -1}, "entities is -1"),
        ({"dropout_hidden": 1.0}, "dropout_hidden is 1.0"),
        ({"dropout_context": -0.1}, "dropout_context is -0.1"),
        ({"variant": "neither"}, "variant is 'neither', expected one of baseline"),
        ({"merging": "sum"}, "merging is 'sum', expected one of gru-relu"),
        ({"vocabulary": 53, "entities": 50}, "vocabulary is 53"),
        ({"tied": True, "hidden_dim": 256}, "embedding_dim 512 and hidden_dim 256"),
    ],
)
def test_a_bad_setting_is_refused_with_its_value(
    settings: dict[str, Any], message: str, unchecked: None
) -> None:
    with pytest.raises(ValueError, match=message):
        ModelConfig(**settings)


def test_the_variant_tells_which_layers_are_dynamic() -> None:
    layers = {
        variant: (config.dynamic_input, config.dynamic_output)
        for variant in ("baseline", "input", "output", "both")
        if (config := ModelConfig(variant=variant))
    }

    assert layers == {
        "baseline": (False, False),
        "input": (True, False),
        "output": (False, True),
        "both": (True, True),
    }
