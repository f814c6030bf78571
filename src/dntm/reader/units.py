"""Units of surprisal: a model computes in nats, people prefer bits."""

import math
from typing import Literal

Unit = Literal["bits", "nats"]
NATS: dict[Unit, float] = {"bits": math.log(2), "nats": 1.0}
"""How many nats each unit is."""


def check_unit(unit: str) -> None:
    """Raise ValueError where there is no such unit."""
    if unit not in NATS:
        raise ValueError(f"unit {unit!r}, expected {' or '.join(NATS)}")


def in_bits(value: float, unit: Unit) -> float:
    """What so much of a unit is in bits."""
    return value * NATS[unit] / NATS["bits"]
