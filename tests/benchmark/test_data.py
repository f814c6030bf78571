"""The benchmark of reading text: whose memory it reports, and on which machine."""

import re
import subprocess
import sys

import numpy as np
import pytest

from dntm.benchmark.machine import machine_name
from dntm.cli.main import main

COMMAND = ["benchmark", "data", "--megabytes", "1"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the parent's memory, too")
def test_memory_is_not_that_of_the_process_that_started_it() -> None:
    mine = np.ones(50_000_000)

    done = subprocess.run(
        [sys.executable, "-m", "dntm", *COMMAND], check=True, capture_output=True, text=True
    )

    found = re.findall(r"([\d,]+) MiB", done.stdout)
    assert len(found) == 3
    assert all(0 < int(number.replace(",", "")) < mine.nbytes / 2**20 for number in found)


def test_a_share_of_the_limit_names_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    main(COMMAND)

    lines = capsys.readouterr().out.splitlines()
    assert any(re.match(r"limit \(split\) .*%\)$", line) for line in lines)
    assert f"machine          {machine_name()}" in lines
    assert any(re.match(r"threads +1 \(processor seconds\)$", line) for line in lines)
