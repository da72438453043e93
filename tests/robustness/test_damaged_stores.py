"""Stores that travel badly, or that somebody has written to: one line, or a row less; never an error of ours."""

import random
import shutil
import sqlite3
from contextlib import suppress

import pytest
from report_cases import make_store
from volume import seeds, spread

from ddlopt.analysis.bench import Store

ODD = ["x", -5.0, float("inf"), float("nan"), 10**18, b"\xff\x00", "\x1b[31m", None, "{}", "[[1]]", "[" * 3000, ""]
COLUMNS = (
    "status", "objective", "bound", "gap", "checked", "scope", "scope_bound", "runtime_s", "wall_s", "answer_s", "seed",
    "message", "method", "solver", "family", "instance", "instance_digest", "options", "versions", "machine", "details",
    "trace", "time_limit_s", "gap_limit", "threads", "memory_limit_bytes", "peak_memory_bytes", "finished", "solution",
)  # fmt: skip


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("stores") / "good.sqlite")


@pytest.fixture
def store(good, tmp_path):
    return shutil.copy(good, tmp_path / "store.sqlite")


def change(path, column, value, table="runs", row=2):
    connection = sqlite3.connect(path)
    with suppress(sqlite3.IntegrityError), connection:  # NaN is NULL, which most may not be
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
    connection.close()


def says_no_more_than_it_must(call, path, folder):
    for command in (
        ["results", path, "--out", folder / "out.csv"],
        ["report", path, "--out", folder / "r", "--pictures", "0"],
    ):
        code, _, told = call(*command)
        assert code in (0, 2)
        assert "internal error" not in told
        assert (code == 0) or len(told.splitlines()) == 1
        assert all(each.isprintable() or each == "\n" for each in told)


@pytest.mark.parametrize("column", spread(COLUMNS, 6))
def test_a_bad_row_is_left_out_or_harmless(store, call, tmp_path, column):
    for value in ODD:
        if value is not None or column in ("objective", "bound", "scope"):
            change(store, column, value)
            with Store(store, write=False) as opened:
                runs = list(opened.runs())
                assert len(runs) + len(opened.skipped) == 15
    code, _, told = call("report", store, "--out", tmp_path / "report", "--pictures", "1")
    assert code == 0, told


def test_what_is_left_out_is_told(store, call, tmp_path):
    change(store, "runtime_s", -5.0)
    change(store, "status", "great\x1b[31m", row=3)
    change(store, "best_objective", float("inf"), table="instances", row=2)
    code, out, told = call("report", store, "--out", tmp_path / "report", "--pictures", "0")
    assert code == 0
    assert "index.html" in out
    assert "rows of" in told
    assert "row 2: runtime_s is -5.0" in told
    assert r"row 3: status is 'great\x1b[31m'" in told


def test_runs_of_a_bad_instance_are_left_out_with_it(store):
    change(store, "sense", "upwards", table="instances", row=1)
    with Store(store, write=False) as opened:
        assert all(run["instance"] != "tiny-n4-d2" for run in opened.runs())
        assert "its instance is not in the store" in opened.skipped.values()


@pytest.mark.parametrize("seed", seeds(6, 400))
def test_damaged_files_are_one_line(store, call, tmp_path, seed):
    dice = random.Random(seed)
    data = bytearray(store.read_bytes())
    for _ in range(dice.choice((1, 3, 30, 300))):
        data[dice.randrange(len(data))] = dice.randrange(256)
    if seed % 3 == 0:
        del data[dice.randrange(len(data)) :]
    if seed % 5 == 0:
        at = dice.randrange(len(data) or 1)
        data[at : at + 4096] = bytes(4096)
    store.write_bytes(data)
    says_no_more_than_it_must(call, store, tmp_path)


def test_a_damaged_store_is_refused_before_a_sweep_begins(store, call):
    """Flipped bytes in its pages; it stays as it is, and a plan for it is refused as well."""
    data = bytearray(store.read_bytes())
    draw = random.Random(0)
    for _ in range(300):
        data[draw.randrange(4096, len(data))] ^= 0xFF
    store.write_bytes(data)
    asked = ["bench", "topology/tiny-n4-d2", "--methods", "topology-finder", "--store", store]
    for command in (asked, [*asked, "--dry-run"]):
        code, out, told = call(*command)
        assert (code, out) == (2, "")
        assert "damaged" in told
        assert told.count("\n") == 1
    assert store.read_bytes() == data
