"""Run the command `tf32dtype ...` by `python -m tests.support.forked_trials ...`, with
forks for the programs that `tune` starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, BinaryIO

from tests.support import forks
from tf32dtype._cli.main import main
from tf32dtype._programs.tune import trials


def start(
    command: Sequence[str], stdout: BinaryIO, stderr: BinaryIO, **options: Any
) -> Any:
    with open(os.devnull, "rb") as nothing:
        options["stdin"] = nothing.fileno()
        return forks.start(
            command, stdout=stdout.fileno(), stderr=stderr.fileno(), **options
        )


if __name__ == "__main__":
    of_trials: Any = trials
    of_trials.subprocess = SimpleNamespace(**vars(subprocess) | {"Popen": start})
    sys.exit(main())
