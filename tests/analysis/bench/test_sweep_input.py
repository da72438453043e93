"""What a sweep refuses, each with one line and exit code 2, and with what is stored as it was."""

import sqlite3

import pytest
from report_cases import make_store

from ddlopt.analysis.bench import Store, suites
from ddlopt.models.errors import StoreError

TINY = "topology/tiny-n4-d2"


def refused(call, *arguments, command="bench"):
    code, out, err = call(command, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("ddlopt: ")
    assert err.count("\n") == 1
    return err


def test_a_store_of_a_newer_version(call, tmp_path):
    store = make_store(tmp_path / "r.sqlite")
    with sqlite3.connect(store) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = store.read_bytes()
    assert "newer ddlopt" in refused(call, TINY, "--store", store)
    assert store.read_bytes() == before


@pytest.mark.parametrize("command", [("bench", TINY, "--store"), ("results", "-o", "table.csv")])
@pytest.mark.parametrize("part", ["end", "middle"])
def test_a_half_written_store(call, tmp_path, monkeypatch, part, command):
    monkeypatch.chdir(tmp_path)
    store = make_store(tmp_path / "r.sqlite", seeds=50)
    whole = store.read_bytes()
    store.write_bytes(whole[:20000] if part == "end" else whole[:8192] + b"\xff" * (len(whole) - 8192))
    broken = store.read_bytes()
    assert "damaged" in refused(call, *command[1:], store, command=command[0])
    assert store.read_bytes() == broken
    assert not (tmp_path / "table.csv").exists()


def test_another_sweep_has_the_store(call, tmp_path):
    store = make_store(tmp_path / "r.sqlite")
    with Store(store):
        assert "is in use by another sweep" in refused(call, TINY, "--store", store)
    with Store(store, write=False) as reading:
        assert len(list(reading.runs())) == 15


@pytest.mark.slow
def test_nobody_answers(call, tmp_path):
    pytest.importorskip("distributed", reason="needs Dask: pip install 'ddlopt[cluster]'")
    words = (TINY, "--store", tmp_path / "r.sqlite", "--cluster", "tcp://127.0.0.1:9")
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in refused(call, *words)
    assert "no Dask scheduler answers at nonsense" in refused(call, *words[:-1], "nonsense")


def test_suites_without_instances(call, tmp_path, monkeypatch):
    store = ("--store", tmp_path / "r.sqlite")
    assert "'gone-*' matches no bundled instance and is no file" in refused(call, "gone-*", *store)
    monkeypatch.setitem(suites.SUITES, "void", suites.Suite("for a test", {}))
    assert "nothing to do" in refused(call, "void", *store)
    assert "nothing to do" in refused(call, TINY, "--methods", "fifo", *store)
    assert not (tmp_path / "r.sqlite").exists()


def test_words_that_mean_nothing(call, tmp_path):
    store = ("--store", tmp_path / "r.sqlite")
    assert "there is no method 'magic'" in refused(call, TINY, "--methods", "magic", *store)
    assert "no run ends as 'crasht'; runs end as: " in refused(call, TINY, "--again", "crasht", *store)


def test_a_full_disk_is_one_line(tmp_path):
    store = make_store(tmp_path / "r.sqlite")
    with Store(store) as opened:
        (run, *_), instances = list(opened.runs(solutions=True)), opened.instances()
        pages = opened._connection.execute("PRAGMA page_count").fetchone()[0]
        opened._connection.execute(f"PRAGMA max_page_count = {pages}")
        large = run | {"key": "more", "message": "x" * 10**6}
        with pytest.raises(StoreError, match="cannot be used: database or disk is full"):
            opened.add(large, instances[run["instance_digest"]])
        assert len(opened.keys()) == 15
