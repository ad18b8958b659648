"""A short run of the fuzzer; `python -m tests.fuzz --calls N` is the long one."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import Failure, Fuzzer, all_types

CALLS = 5_000


@pytest.mark.sampled(12)
@pytest.mark.parametrize("seed", range(1, 13))
def test_random_calls(seed: int) -> None:
    fuzzer = Fuzzer(all_types(), seed)
    failures = []
    for number in range(CALLS):
        try:
            fuzzer.run(number)
        except Failure as failure:
            failures.append(f"call {number}: {fuzzer.draw(number).label}: {failure}")
            if len(failures) == 20:
                break
    assert not failures, "\n".join(failures)
