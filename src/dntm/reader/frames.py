"""Tables as pandas data frames; pandas is imported where one is asked for, and is no dependency."""

from collections.abc import Iterable, Sequence
from typing import Any


def frame(rows: Iterable[Sequence[object]], columns: Sequence[str]) -> Any:
    """A data frame; ValueError where pandas is missing."""
    try:
        import pandas as pd
    except ImportError:
        raise ValueError("a data frame needs pandas, not installed: pip install pandas") from None
    return pd.DataFrame(list(rows), columns=list(columns))
