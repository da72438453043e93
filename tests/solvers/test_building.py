"""A limit on time that holds while models are built, and what else an alarm must not do."""

import signal
import sys
import threading
import time

import pytest

from ddlopt.solvers import building as module
from ddlopt.solvers.building import TimeUpError, building, built

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="there is no alarm here")


@pytest.fixture(autouse=True)
def _no_alarm_is_left():
    before = signal.getsignal(signal.SIGALRM)
    yield
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before


def busy(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass
    return "ready"


def test_ends_what_would_go_on():
    with pytest.raises(TimeUpError), building(0.05):
        busy(60)
    assert built(0.05, lambda: busy(60)) is None


def test_is_not_taken_for_an_error():
    def careless():
        while True:
            try:
                busy(0.01)
            except Exception:
                pytest.fail("an error handler got the alarm")

    assert built(0.05, careless) is None


@pytest.mark.parametrize("answer", [TypeError("no common dtype"), None], ids=["another error", "silence"])
def test_what_libraries_make_of_it_is_not_believed(answer):
    """NumPy makes a ``TypeError`` of what is raised while it compares, and other libraries say nothing."""

    def library():
        try:
            busy(60)
        except BaseException:
            if answer is not None:
                raise answer from None
        return "half a model"

    assert built(0.05, library) is None


def test_errors_in_time_stay_what_they_are():
    with pytest.raises(ValueError, match="ours"), building(60.0):
        raise ValueError("ours")


@pytest.mark.parametrize("time_s", [None, 60.0])
def test_leaves_what_is_in_time(time_s):
    with building(time_s):
        found = busy(0.01)
    assert found == "ready"


def test_limits_that_have_passed_already():
    for _ in range(200):
        try:
            with building(1e-9):
                busy(1e-4)
        except TimeUpError:
            pass


def test_blocks_within_are_left_in_order():
    left = []

    class Slow:
        def __enter__(self):
            busy(0.15)

        def __exit__(self, *_):
            busy(0.15)
            left.append(True)

    def work():
        with Slow():
            busy(60)

    assert built(0.05, work) is None
    assert left == [True]


def test_the_outer_limit_counts_and_others_alarms_are_left_alone():
    with pytest.raises(TimeUpError), building(0.05), building(60):
        busy(60)
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        assert built(0.01, lambda: busy(0.2)) == "ready"
    finally:
        signal.signal(signal.SIGALRM, before)
    assert rung == [True]


def test_other_threads_go_on():
    found = []
    thread = threading.Thread(target=lambda: found.append(built(0.01, lambda: busy(0.2))))
    thread.start()
    thread.join()
    assert found == ["ready"]


def test_says_once_that_memory_is_much(monkeypatch):
    told, used = [], iter([0])
    monkeypatch.setattr(module, "memory_bytes", lambda: next(used, 3 * 2**30))
    with building(None, told.append):
        busy(0.5)
    assert told == ["the model takes more than 2 GiB of memory; --memory sets a limit"]


def test_nothing_is_told_of_a_limit_that_passes_while_an_object_is_thrown_away(monkeypatch):
    class Slow:
        def __del__(self):
            until = time.perf_counter() + 5
            while time.perf_counter() < until:
                pass

    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    before = sys.unraisablehook
    with pytest.raises(TimeUpError), building(0.05):
        Slow()
    assert sys.unraisablehook is before
    assert not told


def test_other_errors_of_objects_thrown_away_are_told(monkeypatch):
    class Broken:
        def __del__(self):
            raise RuntimeError("broken")

    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(str(unraisable.exc_value)))
    with building(60):
        Broken()
    assert told == ["broken"]
