"""What is counted, and how things are damaged."""

import json
import random
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
HANG = 5.0
"""Seconds of processor time after which a try counts as a hang, and is given up."""
LONGEST_MESSAGE = 1500


class Hang(BaseException):
    """It takes too long."""


@dataclass
class Tally:
    """What became of one kind of attack."""

    what: str
    tried: int = 0
    refused: int = 0
    """With one sentence."""
    problems: list[str] = field(default_factory=list)
    """Tracebacks, hangs, wrong numbers, losses."""

    def attempt(self, label: str, work: Callable[[], T]) -> T | None:
        """Do it; only ValueError and OSError may come of it, with a message of some length."""
        self.tried += 1
        try:
            with _limited():
                return work()
        except (ValueError, OSError) as error:
            self.refused += 1
            if len(str(error)) > LONGEST_MESSAGE:
                self.problems.append(f"{label}: a message of {len(str(error)):,} characters")
        except Hang:
            self.problems.append(f"{label}: more than {HANG:g} s")
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
            self.problems.append(f"{label}: {type(error).__name__} {str(error)[:150]} ({place})")
        return None

    def expect(self, label: str, *, holds: bool) -> None:
        """Note a problem where something does not hold."""
        if not holds:
            self.problems.append(label)


@contextmanager
def _limited() -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, HANG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


ODD: list[bytes | str] = [
    *(b"", b"\0", b"\n", b"\r", b"\r\n", b"\n\n", b"\t", b" " * 40, b"\xff\xfe", b"\xc3"),
    b"\xef\xbb\xbf",
    *("\u0301\u0323\u0301", "\u202e", "\u2028", "\u200b", "\U0001f600", "\u00ad", "\ufeff"),
    *(b"[1]", b"[]", b"[0]", b"[-1]", b"[99999999999]", b"(1", b"1)", b"(1)|2)", b"((((", b"))))"),
    *(b"#begin document (x); part 0\n", b"#end document\n", b"# newdoc id = x\n", b"Entity=(e1"),
    *(b"Entity=e1)", b"\x1b[31m", b"-LRB-", b"*", b"_", b"|", b"{", b"}", b'"', b"\\ud800", b":"),
    *(b"null", b"true", b"1e999", b"-1", b"NaN", b"0x10", b"9" * 400, b"[[", b"]]", b",", b"- "),
    *(b"&a ", b"*a", b"!!python/object:os.system ", b"<<: ", b"? ", b"|\n", b"'", b"<script>"),
]  # fmt: skip
ODD_BYTES: list[bytes] = [word.encode() if isinstance(word, str) else word for word in ODD]


def damaged(content: bytes, rng: random.Random) -> bytes:
    """A few changes: bits, bytes, slices and lines, moved, lost, doubled or replaced."""
    made = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        here, there = (rng.randrange(len(made) + 1) for _ in range(2))
        here, there = min(here, there), min(max(here, there), here + 200)
        kind = rng.randrange(8)
        if kind == 0 and here < len(made):
            made[here] ^= 1 << rng.randrange(8)
        elif kind == 1:
            made[here:there] = b""
        elif kind == 2:
            made[here:here] = made[here:there] * rng.choice((1, 1, 2, 20))
        elif kind in (3, 4):
            made[here : here + rng.choice((0, 1, 4))] = rng.choice(ODD_BYTES)
        elif kind == 5:
            made[here:here] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
        elif kind == 6 and rng.random() < 0.3:
            del made[here:]
        else:
            lines = bytes(made).split(b"\n")
            rng.shuffle(lines)
            made = bytearray(b"\n".join(lines))
    return bytes(made)


HOSTILE: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 24.0, 10**6, 10**9, 10**18, 10**400, 1e308, float("nan"), float("inf")),
    *("", "x", "x" * 100_000, "\ud800", "\x1b[31m", "../../x", [], [[]], [1], {}, {"": 0}),
    *([0] * 10_000, {"a": {"a": {"a": 1}}}),
)


def edited(value: Any, rng: random.Random) -> Any:
    """A JSON value with one of its parts replaced, removed, added or renamed."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        made = dict(value)
        name = rng.choice(list(made))
        kind = rng.randrange(8)
        if kind == 0:
            del made[name]
        elif kind == 1:
            made["another"] = rng.choice(HOSTILE)
        elif kind == 2:
            made[name + "x"] = made.pop(name)
        else:
            made[name] = edited(made[name], rng)
        return made
    if isinstance(value, list) and value and rng.random() < 0.7:
        made_list = list(value)
        place = rng.randrange(len(made_list))
        made_list[place] = edited(made_list[place], rng)
        return made_list
    return rng.choice(HOSTILE)


def edited_json(content: bytes, rng: random.Random) -> bytes:
    """A JSON text with a part edited; now and then one of great depth."""
    if rng.random() < 0.02:
        return rng.choice((b"[", b'{"a":')) * 100_000
    return json.dumps(edited(json.loads(content), rng)).encode()
