"""Count the inputs that each test compares, sample slow tests, and set up
hypothesis."""

import os
import signal
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator

import pytest

try:
    from hypothesis import settings
except ImportError:  # the files that need hypothesis say so
    pass
else:
    # A CI run repeats its examples, so that a new failure is due to the change.
    in_ci = bool(os.environ.get("CI"))
    settings.register_profile("tf32dtype", deadline=None, derandomize=in_ci)
    settings.load_profile("tf32dtype")

PROPERTY = "inputs compared"

# A shell ignores SIGINT for programs in the background, but tests send SIGINT.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def own_numpy() -> Iterator[None]:
    """Check before and after each test that NumPy's functions are NumPy's own."""
    from tests.support.precision_switch import is_own

    assert is_own()
    yield
    assert is_own()


@pytest.fixture
def compared(
    record_property: Callable[[str, object], None],
) -> Iterator[Callable[..., None]]:
    """Return a function that takes the number of inputs compared with the reference,
    and optionally a label that gets a line of its own."""
    counts: Counter[str] = Counter()

    def count(number: int, of: str = "") -> None:
        counts[of] += number

    yield count
    for of, number in counts.items():
        record_property(f"{PROPERTY}: {of}" if of else PROPERTY, number)
    print(f"{counts.total():,} inputs compared")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        metavar="N/M",
        help="run the N-th of M parts of the tests, counted from 0, chosen by name",
    )
    parser.addoption(
        "--every-case",
        action="store_true",
        help="run every case of tests without the mark `sampled` (default: if all tests"
        " run, one case in 4 of such tests with 8 cases or more)",
    )


def hashed(name: str) -> int:
    return zlib.crc32(name.encode())


@pytest.hookimpl(tryfirst=True)  # before -m selects tests
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    are_all = config.args == config.getini("testpaths")
    samples = are_all and not config.getoption("--every-case")
    mark_what_samples_leave_out(items, share_of_others=4 if samples else 1)
    if part := config.getoption("--part"):
        number, parts = map(int, part.split("/"))
        others = {item for item in items if hashed(item.nodeid) % parts != number}
        config.hook.pytest_deselected(items=[*others])
        items[:] = [item for item in items if item not in others]


def mark_what_samples_leave_out(items: list[pytest.Item], share_of_others: int) -> None:
    """Mark the cases that a sample leaves out as exhaustive.

    The sample is one case in `share`, the argument of the marker `sampled`. For a test
    without the marker that has 8 cases or more, the share is `share_of_others`. The
    draw depends only on the names of the cases, so that every run has the same sample.
    Cases for a GPU run elsewhere and are sampled separately.
    """
    cases: defaultdict[tuple[str, bool], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("exhaustive") is None:
            on_gpu = item.get_closest_marker("gpu") is not None
            cases[item.nodeid.partition("[")[0], on_gpu].append(item)
    for of_a_test in cases.values():
        marker = of_a_test[0].get_closest_marker("sampled")
        share = marker.args[0] if marker else share_of_others
        if marker or len(of_a_test) >= 8:
            for item in left_out(of_a_test, share):
                item.add_marker(pytest.mark.exhaustive)


def left_out(items: list[pytest.Item], share: int) -> list[pytest.Item]:
    """Return the cases of one test that a sample of one in `share` leaves out.

    The sample includes each value that several cases have (a format, an operation, a
    layout). If the share has no room for all such values, the sample is larger.
    """
    count = Counter(value for item in items for value in values(item))
    missing = {value for value in count if count[value] > 1}
    covering, others = [], []
    for item in sorted(items, key=lambda item: hashed(item.name)):
        new = missing & values(item)
        missing -= new
        (covering if new else others).append(item)
    room = max(0, -(-len(items) // share) - len(covering))
    return others[room:]


def values(item: pytest.Item) -> set[tuple[str, Hashable]]:
    """Return the parameters of a case: name and value, or the index of an array."""
    found: set[tuple[str, Hashable]] = set()
    callspec = getattr(item, "callspec", None)
    for name, value in callspec.params.items() if callspec else ():
        try:
            found.add((name, value))
        except TypeError:  # a list, an array
            found.add((name, f"number {callspec.indices[name]}"))
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    simulated = sum(
        "[host" in report.nodeid and report.when == "call"
        for report in terminalreporter.getreports("passed")
    )
    if simulated:
        terminalreporter.write_line(
            f"{simulated} GPU tests ran in the simulator, without a GPU"
        )
    totals: Counter[str] = Counter()
    each = terminalreporter.config.option.markexpr == "exhaustive"
    for report in terminalreporter.getreports(""):
        for name, count in report.user_properties:
            name, colon, of = name.partition(":")
            if name == PROPERTY and report.when == "teardown":
                key = report.nodeid if each else report.nodeid.partition("::")[0]
                totals[key + colon + of] += int(str(count))
    if totals:
        terminalreporter.section("inputs compared")
        for key, count in totals.items():
            terminalreporter.write_line(f"{count:>16,}  {key}")
