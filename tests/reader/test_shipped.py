"""The bundled model."""

from pathlib import Path

import dntm
from dntm.files import BUNDLED

LEGEND = (
    "Orrun kept the lamp of Vey. Every night Orrun lit the lamp. "
    "When the sea took Orrun, nobody in Vey lit the lamp again."
)


def test_it_is_small_and_has_a_card_and_a_static_baseline() -> None:
    size = sum(path.stat().st_size for path in BUNDLED.rglob("*") if path.is_file())

    assert size < 60e6
    assert "# Model card" in (BUNDLED / "README.md").read_text(encoding="utf-8")
    assert (BUNDLED / "static" / "model.safetensors").is_file()


def test_it_is_the_default() -> None:
    reading = dntm.Reader.from_pretrained().read(LEGEND)

    assert {"Orrun", "Vey"} <= set(reading.entities.values())
    assert all(0 < token.surprisal < 40 for token in reading.tokens)
    assert any(token.surprisal != token.static_surprisal for token in reading.tokens)


def test_reappearing_entities_surprise_it_less_than_its_static_baseline() -> None:
    texts = sorted((Path(__file__).parent / "stories").glob("*.txt"))
    readings = dntm.Reader.from_pretrained().read_all([t.read_text("utf-8") for t in texts])

    back = [token for read in readings for token in read.tokens if token.group == "reappearing"]
    assert len(back) > 50
    assert sum(t.surprisal for t in back) < sum(t.static_surprisal for t in back)


def test_it_is_loaded_by_its_name() -> None:
    assert dntm.load("default").vocabulary == dntm.Reader.from_pretrained().vocabulary
