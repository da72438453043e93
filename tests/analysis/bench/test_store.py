"""The store: what it refuses, how it grows, and what others read of it."""

import json
import sqlite3

import pandas as pd
import pytest

from ddlopt.analysis.bench import Store, export, store
from ddlopt.models.errors import OptionError, StoreError

INSTANCE = {
    "digest": "d" * 64, "name": "tiny", "family": "topology", "sense": "minimize", "unit": "s", "sizes": {"n": 4},
    "source": "by hand", "best_objective": 11.5,
}  # fmt: skip
RUN = {
    "key": "k1", "instance_digest": "d" * 64, "instance": "tiny", "family": "topology", "method": "exact",
    "options": {"effort": 1.0}, "solver": "highs", "seed": 0, "time_limit_s": 60.0, "gap_limit": 1e-4, "threads": 1,
    "memory_limit_bytes": None, "status": "optimal", "objective": 11.5, "bound": 11.5, "gap": 0.0, "checked": True,
    "scope": None, "scope_bound": None, "runtime_s": 0.5, "compile_s": 0.0, "evidence": None, "answer_s": 0.6,
    "found_by": "milp", "proved_by": "combinatorial",
    "wall_s": 0.75, "peak_memory_bytes": 10**8, "message": "",
    "host": "here", "finished": "2026-01-01T00:00:00+00:00", "versions": {"ddlopt": "0.1.0"}, "details": {"nodes": 3},
    "machine": {"cpu": "Abacus 3", "cores": 2, "memory_bytes": 8000, "system": "Linux"}, "revision": "c0ffee-dirty",
    "trace": [[0.1, 12.0, 11.0], [0.5, 11.5, 11.5]], "solution": {"family": "topology", "links": [[0, 1, 1]]},
}  # fmt: skip
CRASHED = {"key": "k2", "objective": None, "gap": None, "solution": None, "status": "crashed"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.sqlite"


def test_what_goes_in_comes_out(path):
    with Store(path) as opened:
        opened.add(RUN, INSTANCE)
        opened.add(RUN | {"objective": 99.0}, INSTANCE)
        opened.add(RUN | CRASHED, INSTANCE)
        assert opened.keys() == {"k1", "k2"}
    with Store(path, write=False) as reading:
        first, second = reading.runs(solutions=True)
        assert first == RUN
        assert second["solution"] is None
        assert reading.instances() == {"d" * 64: INSTANCE}


def test_others_read_it_without_us(path):
    with Store(path) as opened:
        opened.add(RUN, INSTANCE)
    rows = sqlite3.connect(path).execute("SELECT instance, json_extract(details, '$.nodes') FROM runs").fetchall()
    assert rows == [("tiny", 3)]


@pytest.mark.parametrize("ending", export.FORMATS)
def test_tables_for_other_programs(path, tmp_path, ending):
    table = tmp_path / f"results{ending}"
    with Store(path) as opened:
        opened.add(RUN, INSTANCE)
        opened.add(RUN | CRASHED, INSTANCE)
        export.write(opened, table)
    read = (pd.read_csv if ending == ".csv" else pd.read_parquet)(table)
    assert list(read["status"]) == ["optimal", "crashed"]
    assert read["objective"].isna().tolist() == [False, True]
    assert read["best_objective"].tolist() == [11.5, 11.5]
    assert json.loads(read["trace"][0]) == RUN["trace"]


def test_a_table_of_another_kind_is_refused(path):
    with Store(path) as opened, pytest.raises(OptionError, match=r"must end in .csv or .parquet"):
        export.write(opened, "results.xlsx")


def broken(path, what):
    if what == "text":
        path.write_text("not a database, but long enough to look like one" * 100)
    elif what == "other":
        sqlite3.connect(path).execute("CREATE TABLE runs (key)")
    elif what == "newer":
        with Store(path):
            pass
        sqlite3.connect(path).execute("PRAGMA user_version = 99")
    elif what == "half":
        with Store(path) as opened:
            for number in range(50):
                opened.add(RUN | {"key": f"k{number}"}, INSTANCE)
        path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("text", "is not a store of results, or is damaged"),
        ("other", "is a database of something else"),
        ("newer", "was written by a newer ddlopt: it is a store of version 99"),
        ("half", "is not a store of results, or is damaged"),
    ],
)
def test_what_is_no_store_is_refused_and_kept(path, what, line, write):
    broken(path, what)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=line):
        Store(path, write=write)
    assert path.read_bytes() == before
    if what != "text":  # the lock is free again
        with pytest.raises(StoreError, match=line):
            Store(path, write=write)


def test_one_that_is_not_there(path):
    with pytest.raises(StoreError, match="there is no such store"):
        Store(path, write=False)


def test_an_older_store_is_brought_up_to_date(path, monkeypatch):
    with Store(path) as opened:
        opened.add(RUN, INSTANCE)
    later = (*store.MIGRATIONS, "ALTER TABLE runs ADD COLUMN tag TEXT NOT NULL DEFAULT 'none';")
    monkeypatch.setattr(store, "MIGRATIONS", later)
    before = path.read_bytes()
    for write in (False, True):
        with Store(path, write=write) as opened:
            (run,) = opened.runs()
        assert run["tag"] == "none"
        assert run["objective"] == 11.5
        assert write or path.read_bytes() == before
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (len(later),)


def test_a_store_of_the_first_version_says_nothing_of_machines(path, monkeypatch):
    with monkeypatch.context() as patch:
        later = ("machine", "revision", "answer_s", "compile_s", "evidence", "found_by", "proved_by")
        patch.setattr(store, "MIGRATIONS", store.MIGRATIONS[:1])
        patch.setattr(store, "NESTED", [name for name in store.NESTED if name != "machine"])
        with Store(path) as opened:
            opened.add({name: RUN[name] for name in RUN if name not in later}, INSTANCE)
    with Store(path) as opened:
        opened.add(RUN | {"key": "k2"}, INSTANCE)
        first, second = opened.runs()
    assert (first["machine"], first["revision"], first["answer_s"]) == ({}, None, None)
    assert first["trace"] == RUN["trace"]
    assert (second["machine"], second["revision"]) == (RUN["machine"], "c0ffee-dirty")


def test_a_migration_that_fails_changes_nothing(path, monkeypatch):
    with Store(path) as opened:
        opened.add(RUN, INSTANCE)
    faulty = (*store.MIGRATIONS, "ALTER TABLE runs ADD COLUMN tag TEXT; ALTER TABLE nowhere ADD COLUMN x;")
    with monkeypatch.context() as patch:
        patch.setattr(store, "MIGRATIONS", faulty)
        with pytest.raises(StoreError, match="no such table: nowhere"):
            Store(path)
    with Store(path) as opened:
        (run,) = opened.runs()
    assert "tag" not in run
