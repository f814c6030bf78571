"""Settings of impossible models are refused by name and value; none is changed silently."""

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import jaxtyping
import pytest

from dntm.model.config import Extension, ModelConfig


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
        ({"extensions": ("cache",)}, "'cache', expected one of entity-residual, salience"),
        ({"extensions": ("salience", "salience")}, "extensions salience salience, expected each"),
        ({"vocabulary": 53, "entities": 50}, "vocabulary is 53"),
        ({"tied": True, "hidden_dim": 256}, "embedding_dim 512 and hidden_dim 256"),
        ({"core": "transformer", "hidden_dim": 256}, "Transformer with embedding_dim 512 and hid"),
        ({"core": "transformer", "layers": 3}, "embedding_dim 512 over layers 3"),
        *(
            ({"variant": variant, "extensions": (name,)}, f"extension {name} with variant")
            for variant in ("baseline", "output")
            for name in ("naming", "entity-residual")
        ),
        *(
            ({"variant": variant, "extensions": ("entity-nlm",)}, "entity-nlm .* the baseline")
            for variant in ("input", "output", "both")
        ),
    ],
)
def test_a_bad_setting_is_refused_with_its_value(
    settings: dict[str, Any], message: str, unchecked: None
) -> None:
    with pytest.raises(ValueError, match=message):
        ModelConfig(**settings)


def test_the_order_of_extensions_does_not_matter() -> None:
    names: tuple[Extension, ...] = ("pointer", "salience", "entity-residual")

    assert len({ModelConfig(extensions=order) for order in permutations(names)}) == 1


def test_the_variant_tells_which_layers_are_dynamic() -> None:
    layers = {
        letter: (config.dynamic_input, config.dynamic_output)
        for letter in "ABCD"
        if (config := ModelConfig(variant=letter))  # type: ignore[arg-type]
    }

    assert layers == {
        "A": (False, False), "B": (True, False), "C": (False, True), "D": (True, True)
    }  # fmt: skip
