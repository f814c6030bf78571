"""Settings of impossible models are refused by name and value; none is changed silently."""

from itertools import permutations
from typing import Any

import pytest

from dntm.model.config import Extension, ModelConfig


@pytest.mark.usefixtures("unchecked")
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
        ({"core": "transformer", "layers": 3}, "embedding_dim 512 with 3 layers"),
        ({"core": "gpt2", "extensions": ("naming",)}, "extension naming .* one row per word"),
        *(
            ({"variant": "baseline", "extensions": (name,)}, f"extension {name} with variant")
            for name in ("naming", "entity-residual", "word-attention")
        ),
        *(
            ({"variant": variant, "extensions": ("entity-nlm",)}, "entity-nlm .* the baseline")
            for variant in ("input", "output", "both")
        ),
    ],
)
def test_a_bad_setting_is_refused_with_its_value(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ModelConfig(**settings)


def test_the_order_of_extensions_does_not_matter() -> None:
    names: tuple[Extension, ...] = ("pointer", "salience", "entity-residual")

    assert len({ModelConfig(extensions=order) for order in permutations(names)}) == 1


def test_the_variant_tells_which_layers_are_dynamic() -> None:
    configs = [ModelConfig(variant=letter) for letter in "ABCD"]  # type: ignore[arg-type]

    layers = [(config.dynamic_input, config.dynamic_output) for config in configs]
    assert layers == [(False, False), (True, False), (False, True), (True, True)]
