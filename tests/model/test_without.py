"""Models without a part equal models that never had it."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from dntm.model.base_model import load_base
from dntm.model.config import Extension, Variant
from dntm.model.language_model import DynamicTextModel
from tests.model import tiny_base
from tests.model.small import ALL_EXTENSIONS, DOCUMENTS, LONG, build, score


@pytest.mark.parametrize("variant", ["baseline", "both"])
@pytest.mark.parametrize("part", ["pointer", "salience", "unseen-pooling"])
def test_a_model_without_an_extension_equals_one_built_without_it(
    variant: Variant, part: Extension
) -> None:
    model = build(variant, "gru-relu", ALL_EXTENSIONS[variant])
    kept = tuple(name for name in model.config.extensions if name != part)
    built = DynamicTextModel(replace(model.config, extensions=kept)).double()
    built.load_state_dict(model.state_dict(), strict=False)

    found = score(model.without([part]), DOCUMENTS, 2)

    assert found == score(built, DOCUMENTS, 2)
    assert found != score(model, DOCUMENTS, 2)


@pytest.mark.parametrize("core", ["lstm", "transformer"])
def test_a_model_without_memory_has_no_states(core: str) -> None:
    model = build("both", "gru-relu", ALL_EXTENSIONS["both"], core=core)
    found = score(model.without(["memory"]), [LONG], 2)
    before = score(model, [LONG], 2)
    with torch.no_grad():  # every d is zero
        for name in ("x.W_dx", "terms.dynamic-output.W_dy", "terms.entity-residual.W_dh"):
            model.get_parameter(name).zero_()

    assert found[0] == pytest.approx(score(model, [LONG], 2)[0], abs=1e-12)
    assert found != before


def test_a_pretrained_core_can_be_used_without_its_parts(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    base = load_base(str(tiny_base.write_base(tmp_path)))
    model = tiny_base.build(base)
    rows = [[1, 3, 8, 9], [1, 9, 3, 4, 8]]

    static = model.without(["memory"])

    assert static.parts == tuple(p for p in model.parts if p in static.config.extensions)
    assert score(static, [rows], 2) != score(model, [rows], 2)


def test_weights_are_shared_and_other_parts_are_named_in_the_error() -> None:
    model = build("input", "max", ("pointer", "salience"))
    other = model.without(["pointer"])

    assert other.x.weight is model.x.weight
    assert other.terms["salience"] is model.terms["salience"]
    assert model.without([]) is model
    with pytest.raises(ValueError, match=r"'naming'.*memory, salience, pointer"):
        model.without(["naming"])
