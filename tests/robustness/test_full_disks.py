"""Disks that are full, or become so: one line and exit code 2, and everything is as it was before."""

import errno
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from report_cases import make_store
from volume import slow, some

import ddlopt
from ddlopt.analysis.bench import Store, store
from ddlopt.instances import best

TINY = "topology/tiny-n4-d2"
DDLOPT = Path(sys.executable).with_name("ddlopt")
COMMANDS = {
    "generate": "generate topology --kind random --servers 9 --degree 3 --out OUT/made.json",
    "solve": f"solve {TINY} --method topology-finder --out OUT/design.json",
    "results": "results STORE --out OUT/table.csv",
    "report": "report STORE --out OUT/report --pictures 0",
    "report again": "report STORE --out REPORT --pictures 0",
    "schema": "schema topology --out OUT/schema.json",
    "plot": f"solve {TINY} --method topology-finder --plot OUT/design.png",
    "compare": f"compare {TINY} --methods topology-finder --plot OUT/bars.svg",
    "certify": f"certify {TINY} --out OUT/proof",
    "parquet": "results STORE --out OUT/table.parquet",
    "lp": f"export {TINY} --formulation rings-and-routes --out OUT/model.lp",
    "mps": f"export {TINY} --formulation rings-and-routes --out OUT/model.mps",
    "nl": f"export {TINY} --formulation rings-and-routes --out OUT/model.nl",
    "json": f"export {TINY} --formulation rings-and-routes --out OUT/model.json",
    "start": f"export {TINY} --formulation rings-and-routes --out OUT/model.mps --start-from topology-finder",
    "over itself": "generate topology --kind random --servers 9 --degree 3 --out OUT/kept.json",
}
DEFAULT = ("generate", "solve", "results", "report", "report again", "lp")


@pytest.fixture(scope="module")
def places(tmp_path_factory, call_once):
    folder = tmp_path_factory.mktemp("disks")
    there = {"STORE": make_store(folder / "store.sqlite"), "REPORT": folder / "report", "OUT": folder / "out"}
    there["OUT"].mkdir()
    (there["OUT"] / "kept.json").write_text("what was there")
    assert call_once("report", there["STORE"], "--out", there["REPORT"], "--pictures", "0") == 0
    return there


@pytest.fixture(scope="module")
def call_once():
    from ddlopt.cli import run

    return lambda *words: run([str(word) for word in words])


def words_of(name, places):
    words = COMMANDS[name]
    for key, place in places.items():
        words = words.replace(key, str(place))
    return words.split()


def content(places):
    """All that is in the folders, names and bytes, but for what readers of SQLite share."""
    files = sorted(path for path in places["OUT"].parent.rglob("*") if path.is_file() and "sqlite-" not in path.name)
    return {str(path): path.read_bytes() for path in files}


@contextmanager
def no_file_beyond(size):
    """The system refuses, with EFBIG in place of ENOSPC, what makes a file larger than that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def holds_the_line(call, name, places):
    before = content(places)
    code, _, told = call(*words_of(name, places))
    assert code == 2, told
    lines = [line for line in told.splitlines() if not line.startswith("method: ")]
    assert len(lines) == 1
    assert "cannot be written: " in lines[0]
    assert content(places) == before


@pytest.mark.parametrize("name", some(COMMANDS, DEFAULT))
@pytest.mark.parametrize("size", [slow(0), 100])
def test_files_that_cannot_grow(call, places, name, size):
    if name.startswith(("lp", "mps", "nl", "json", "start")):
        ddlopt.solve(TINY, "rings-and-routes")  # whatever is imported and kept on the way
    with no_file_beyond(size):
        holds_the_line(call, name, places)


@pytest.mark.parametrize("name", some(COMMANDS, ("generate", "report again")))
@pytest.mark.parametrize("what", ["fsync", "replace"])
def test_disks_that_are_full_in_the_end(call, places, monkeypatch, name, what):
    """The last bytes, or the new name, find no room any more."""
    if what == "fsync" and name in ("report", "report again", "lp", "mps", "nl", "json", "start"):
        pytest.skip("several files, none of which counts before all are there")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, what, full)
    if what == "replace":
        monkeypatch.setattr(Path, "replace", full)
    holds_the_line(call, name, places)


def test_a_result_is_shown_though_its_file_cannot_be(call, places):
    with no_file_beyond(10):
        code, out, _ = call(*words_of("solve", places))
    assert code == 2
    assert "topology-finder" in out


@pytest.mark.parametrize("size", [0, 100, 5000, *map(slow, (20_000, 30_000))])
def test_stores_that_cannot_come_to_be(tmp_path, size):
    """A new store, of which nothing is left; the size it needs is larger than all of these."""
    with no_file_beyond(size), pytest.raises(store.StoreError, match=r"cannot be (used|locked)"):
        Store(tmp_path / "store.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_grow_stays_as_it_was(places, tmp_path):
    """Rows are whole or not there; lock and journal are gone."""
    path = shutil.copy(places["STORE"], tmp_path / "store.sqlite")
    with Store(path, write=False) as opened:
        (run, *_), instances = opened.runs(solutions=True), opened.instances()
    rows = 0

    def add_many():
        nonlocal rows
        for rows in range(10_000):
            opened.add(run | {"key": f"{rows}"}, instances[run["instance_digest"]])

    with Store(path) as opened:
        before = opened.keys()
        size = path.stat().st_size
        with no_file_beyond(size + 60_000), pytest.raises(store.StoreError, match="cannot be used"):
            add_many()
    assert rows > 1
    assert [each.name for each in tmp_path.iterdir()] == ["store.sqlite"]
    with Store(path) as opened:
        assert opened.keys() == before | {f"{row}" for row in range(rows)}
        assert len(list(opened.runs())) == len(before) + rows
    assert [each.name for each in tmp_path.iterdir()] == ["store.sqlite"]


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 10_000, 60_000, 100_000, 200_000])
def test_a_sweep_whose_disk_is_full_ends_in_one_line(tmp_path, size):
    path = tmp_path / "store.sqlite"
    words = [DDLOPT, "bench", TINY, "--methods", "topology-finder", "--seeds", "0-5", "--store", path]

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    done = subprocess.run(words, preexec_fn=limit, capture_output=True, text=True)
    if done.returncode == 0:
        assert size >= 60_000  # what a store of six rows takes depends on the machine
        return
    assert done.returncode == (2 if size else 1), done.stderr  # without any temporary file nothing begins
    assert done.stderr.startswith(f"ddlopt: {path} cannot be " if size else "ddlopt: nothing more can be written: ")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "store.sqlite.lock").exists()
    if path.exists():
        assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
        with Store(path, write=False) as opened:
            assert len(list(opened.runs())) < 6
    else:
        assert list(tmp_path.iterdir()) == []


def test_imported_solutions(call, places, tmp_path):
    from ddlopt.solvers.backends.start_files import write_start
    from ddlopt.solvers.catalogue import formulation_named

    formulation = formulation_named("rings-and-routes", ddlopt.load(TINY))
    write_start(formulation, ddlopt.load(TINY), best(TINY), tmp_path / "model.mps", "mps", ["highs"])
    (file,) = tmp_path.glob("*.sol")
    words = ["import-solution", TINY, "--formulation", "rings-and-routes", file, "--out", places["OUT"] / "x.json"]
    with no_file_beyond(10):
        code, _, told = call(*words)
    assert (code, len(told.splitlines())) == (1, 1), told  # it fails at a temporary file
    assert not (places["OUT"] / "x.json").exists()
