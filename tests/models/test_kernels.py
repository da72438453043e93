"""Kernels are compiled ahead, once, for the types declared, and anew when anything they are made of has changed."""

import os
import pickle
import subprocess
import sys
import textwrap
from types import ModuleType

import numpy as np
import pytest
from volume import slow

from ddlopt.models import kernels

INNER = """
from numba import njit

FACTOR = 3

@njit(cache=True)
def scaled(values):
    total = 0.0
    for value in values:
        total += value * FACTOR
    return total
"""
OUTER = """
from typing import Any, NamedTuple
from kernels_inner import scaled
from ddlopt.models.kernels import kernel

class Pair(NamedTuple):
    ends: Any
    weights: Any

@kernel("(const(f8[::1]), i8)")
def shifted(values, by):
    return scaled(values) + by

@kernel("f8(record(Pair, const(i8[::1]), f8[::1]))", nogil=True)
def weighed(pair):
    return shifted(pair.weights, pair.ends[0])

@kernel("(i8,)", "(f8,)", fastmath={"nnan", "nsz", "ninf"})
def doubled(value):
    return value + value
"""
HEAD = """
import numba.core.event as event

class Listener(event.Listener):
    def on_start(self, what):
        print("compiles", what.data["dispatcher"].py_func.__name__)
    def on_end(self, what):
        pass

event.register("numba:compile", Listener())
import numpy as np
from ddlopt.models.compilation import compile_kernels
import kernels_outer
"""
ASK = "print(kernels_outer.shifted(np.ones(2), 1))"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "kernels_inner.py").write_text(INNER)
    (tmp_path / "kernels_outer.py").write_text(OUTER)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def started(code, folder):
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + textwrap.dedent(code)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        # Python's own compiled files would hide an edit within the second that leaves the size as it is.
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


def output(process):
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out.split("\n")[:-1], err


def run(code, folder):
    return output(started(code, folder))


@pytest.mark.slow
def test_compiled_ahead_and_then_for_no_other_types(folder):
    """After compiling ahead nothing is compiled, and arguments of other types are an error."""
    out, err = run(
        """
        assert compile_kernels(["kernels_outer"]) > 0
        print("clock")
        assert compile_kernels(["kernels_outer"]) == 0
        frozen = np.ones(2)
        frozen.flags.writeable = False
        print(kernels_outer.shifted(np.ones(2), 1), kernels_outer.shifted(frozen, 1))
        ends = np.arange(2)
        ends.flags.writeable = False
        print(kernels_outer.weighed(kernels_outer.Pair(ends, np.ones(2))))
        for wrong in (np.ones(2, np.int64), np.ones(4)[::2], np.ones((2, 2)), "text"):
            try:
                kernels_outer.shifted(wrong, 1)
            except TypeError as problem:
                print("No matching definition" in str(problem))
        """,
        folder,
    )
    before, after = out[: out.index("clock")], out[out.index("clock") + 1 :]
    assert {"compiles shifted", "compiles scaled", "compiles weighed", "compiles doubled"} <= set(before)
    assert after == ["7.0 7.0", "6.0", *["True"] * 4]
    assert err.startswith("compiling kernels, once, about ")
    assert err.count("\n") == 1


@pytest.mark.slow
def test_loaded_by_the_next_process(folder, monkeypatch):
    """What one process has compiled the next one loads and says nothing of, in whatever order it has options."""
    for seed in range(3):
        monkeypatch.setenv("PYTHONHASHSEED", str(seed))
        out, err = run(f'compile_kernels(["kernels_outer"]); {ASK}', folder)
        assert (out == ["7.0"], err == "") == (seed > 0, seed > 0)


@pytest.mark.slow
def test_called_without_being_compiled_ahead(folder):
    """A kernel that is called compiles what it declares, and the result is the same."""
    out, err = run("print(kernels_outer.doubled(2), kernels_outer.doubled(1.5))", folder)
    assert out == ["compiles doubled", "compiles doubled", "4 3.0"]
    assert err == ""


@pytest.mark.parametrize("change", [slow(("FACTOR = 3", "FACTOR = 4")), ("total = 0.0", "total = 2.0")])
def test_edit_in_another_file_is_noticed(folder, change):
    """A constant and a literal of a called function in another file are part of a kernel."""
    run(ASK, folder)
    (folder / "kernels_inner.py").write_text(INNER.replace(*change))
    out, _ = run(ASK, folder)
    assert {"compiles shifted", "compiles scaled"} <= set(out)
    assert out[-1] != "7.0"
    assert run(ASK, folder)[0] == out[-1:]


@pytest.mark.parametrize("values", [(3, 4), (np.uint64(3), np.uint64(4)), (np.arange(3), np.arange(4))])
def test_another_value_of_a_constant_is_another_text(values):
    """Of NumPy's numbers too."""
    assert len({kernels._as_text(value) for value in values}) == 2


@pytest.mark.slow
def test_unrelated_edit_is_not(folder):
    """What a kernel does not use may change at will."""
    run(ASK, folder)
    (folder / "kernels_inner.py").write_text(INNER + "\nELSE = 5\n")
    assert run(ASK, folder)[0] == ["7.0"]


@pytest.mark.slow
def test_two_processes_compile_once(folder):
    """Of several processes that need a kernel at the same time one compiles it."""
    many = [started(f'compile_kernels(["kernels_outer"]); {ASK}', folder) for _ in range(3)]
    lines = [line for each in many for line in output(each)[0]]
    assert lines.count("7.0") == 3
    assert lines.count("compiles shifted") == 1


def test_forked_process_compiles_what_its_parent_has_not(folder):
    """A lock that the parent has used is of no use to its child."""
    out, _ = run(
        """
        import os
        kernels_outer.shifted.prepare()
        child = os.fork()
        if child == 0:
            kernels_outer.doubled.prepare()
            os._exit(0)
        print(os.waitpid(child, 0)[1], kernels_outer.doubled.kept)
        """,
        folder,
    )
    assert out[-1] == "0 True"


def test_by_name_through_pickle():
    """A kernel goes to another process by its name."""
    from ddlopt.frontier.codesign.reconfigured.kernels import times_on_trees

    assert pickle.loads(pickle.dumps(times_on_trees)) is times_on_trees
    none = np.zeros((2, 2), np.int64)
    assert times_on_trees(none, none, np.zeros((2, 2))).shape == (2, 2)


def test_called_from_python_what_only_kernels_call_is_python():
    from ddlopt.frontier.compression.timeline.label_setting.quick_order import quick_order
    from ddlopt.models.sorting_kernels import stable_order

    for order in (quick_order, stable_order):
        compiled = list(order.signatures)
        assert order(np.array([2.0, 0.5, 1.0])).tolist() == [1, 2, 0]
        assert order.signatures == compiled


def test_sorted_as_numpy_does():
    from ddlopt.frontier.compression.timeline.label_setting.quick_order import quick_order
    from ddlopt.models.sorting_kernels import stable_order

    rng = np.random.default_rng(0)
    for count in (0, 1, 2, 15, 16, 17, 31, 60, 200):
        values = rng.integers(0, 1 + count // 2, count).astype(float)
        assert stable_order(values).tolist() == np.argsort(values, kind="stable").tolist()
        order = quick_order(values)
        assert sorted(order.tolist()) == list(range(count))
        assert values[order].tolist() == sorted(values)


@pytest.mark.parametrize("gone", ["module", "class"])
def test_a_cache_that_names_what_has_moved_is_as_good_as_none(gone, tmp_path, monkeypatch):
    """A record's class may be in another module after an update; nothing is told of it, and the kernel is compiled."""
    there = ModuleType("record_was_here")
    there.Pair = type("Pair", (tuple,), {"__module__": there.__name__})
    monkeypatch.setitem(sys.modules, there.__name__, there)
    files = kernels._CacheFile(str(tmp_path), "kernel", "stamp")
    files.save("signature", there.Pair((1, 2)))
    files._save_index({there.Pair: "kernel.nbc"})
    assert files._load_index() == {there.Pair: "kernel.nbc"}
    assert files._load_data(files._data_name(1)) == (1, 2)
    if gone == "module":
        del sys.modules[there.__name__]
    else:
        del there.Pair
    assert files._load_index() == {}
    assert files._load_data(files._data_name(1)) is None
    assert type(number_of_kernel()._cache._cache_file) is kernels._CacheFile


def number_of_kernel():
    """A kernel that is declared and never called."""

    @kernels.kernel("i8(i8)")
    def number(value):
        return value

    return number


@pytest.mark.slow
def test_arrays_are_given_back_once(tmp_path, monkeypatch):
    """An array that is set before loops and branches, last used in some of them; and slices of unequal sizes."""
    from numba.core.runtime import _nrt_python, rtsys

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    @kernels.inner()
    def grown(values, size):
        longer = np.zeros(size, np.int64)
        longer[: len(values)] = values
        return longer

    @kernels.kernel("i8(const(i8[::1]), i8)")
    def walked(values, rounds):
        kept = values.copy()
        other = np.ones(3, np.int64)
        total = 0
        for k in range(rounds):
            if k % 3 == 0:
                total += kept[k % len(kept)]
            elif k % 3 == 1:
                kept = grown(kept, len(kept) + 1)
            else:
                fresh = kept[1:]
                for value in fresh:
                    if value > 5:
                        break
                    total += value * other[0]
        return total + other.sum()

    @kernels.kernel("i8(const(i8[::1]), i8)")
    def grown_alone(values, size):
        return grown(values, size).sum()

    values = np.arange(1, 9)
    assert walked(values, 1) == 4
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    for rounds in range(12):
        assert walked(values, rounds) == walked.py_func(values, rounds)
    after = rtsys.get_allocation_stats()
    _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0
    assert grown_alone(values, 9) == 36
    with pytest.raises(ValueError, match="different size"):
        grown_alone(values, 7)
