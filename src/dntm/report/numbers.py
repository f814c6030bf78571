"""Numbers as words: means with their errors, changes with their intervals, times."""

import math
from collections.abc import Sequence

from dntm.evaluation.columns import Floats
from dntm.evaluation.uncertainty import Comparison, DocumentSums, mean_and_error, paired_bootstrap
from dntm.experiments.paper import PaperValue

NONE = "–"


def plus_minus(values: Floats | None, digits: int) -> str:
    """Mean ± standard error over seeds; the value alone for one seed."""
    if values is None or not len(values):
        return NONE
    mean, error = (float(number) for number in mean_and_error(values))
    if math.isnan(mean):
        return NONE
    return f"{mean:.{digits}f}" + ("" if math.isnan(error) else f" ± {error:.{digits}f}")


def paper_value(value: PaperValue, digits: int) -> str:
    """The paper's mean and error; some of its errors have a digit more."""
    error = f"{value.error:.{digits}f}"
    if value.error and not float(error):
        error = f"{value.error:g}"
    return f"{value.mean:.{digits}f} ± {error}"


def mean_error(values: Floats | None) -> tuple[float | None, float | None]:
    """The same as numbers, None where there is none."""
    if values is None or not len(values):
        return None, None
    mean, error = (float(number) for number in mean_and_error(values))
    return (None if math.isnan(mean) else mean, None if math.isnan(error) else error)


def compare(baseline: DocumentSums, other: DocumentSums) -> Comparison | None:
    """A paired bootstrap over documents; None where nothing is counted."""
    return paired_bootstrap(baseline, other) if baseline.documents else None


def signed(value: float, digits: int) -> str:
    """A number with its sign, a true minus; zero has none."""
    text = f"{abs(value):.{digits}f}"
    if not float(text):
        return text
    return ("+" if value > 0 else "−") + text


def percent(ratio: float) -> str:
    """A ratio as a change: 0.98 is −2.0 %."""
    return f"{signed(100 * (ratio - 1), 1)} %"


def percent_interval(interval: tuple[float, float]) -> str:
    """An interval of ratios as one of changes."""
    low, high = (signed(100 * (end - 1), 1) for end in interval)
    return f"[{low}, {high}]"


def interval(ends: tuple[float, float], digits: int) -> str:
    """An interval of differences."""
    low, high = (signed(end, digits) for end in ends)
    return f"[{low}, {high}]"


def duration(seconds: float) -> str:
    """Seconds as hours, minutes and seconds."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {whole % 60:02d} s" if minutes else f"{whole} s"


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else list(words))
