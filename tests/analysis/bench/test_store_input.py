"""What a sweep and a report refuse, each with one line and exit code 2, and with what is stored as it was."""

import sqlite3

import pytest
from report_cases import make_store

from ddlopt.analysis.bench import Store, suites
from ddlopt.models.errors import StoreError

TINY = "topology/tiny-n4-d2"


def test_a_sweep_on_a_store_of_a_newer_version(refused, tmp_path):
    store = make_store(tmp_path / "r.sqlite")
    with sqlite3.connect(store) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = store.read_bytes()
    assert "newer ddlopt" in refused("bench", TINY, "--store", store)
    assert store.read_bytes() == before


@pytest.mark.parametrize("command", [("bench", TINY, "--store"), ("results", "-o", "table.csv")])
@pytest.mark.parametrize("part", ["end", "middle"])
def test_a_half_written_store(refused, tmp_path, monkeypatch, part, command):
    monkeypatch.chdir(tmp_path)
    store = make_store(tmp_path / "r.sqlite", seeds=50)
    whole = store.read_bytes()
    store.write_bytes(whole[:20000] if part == "end" else whole[:8192] + b"\xff" * (len(whole) - 8192))
    broken = store.read_bytes()
    assert "damaged" in refused(*command, store)
    assert store.read_bytes() == broken
    assert not (tmp_path / "table.csv").exists()


def test_another_sweep_has_the_store(refused, tmp_path):
    store = make_store(tmp_path / "r.sqlite")
    with Store(store):
        assert "is in use by another sweep" in refused("bench", TINY, "--store", store)
    with Store(store, write=False) as reading:
        assert len(list(reading.runs())) == 15


@pytest.mark.slow
def test_nobody_answers(refused, tmp_path):
    pytest.importorskip("distributed", reason="needs Dask: pip install 'ddlopt[cluster]'")
    words = (TINY, "--store", tmp_path / "r.sqlite", "--cluster", "tcp://127.0.0.1:9")
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in refused("bench", *words)
    assert "no Dask scheduler answers at nonsense" in refused("bench", *words[:-1], "nonsense")


def test_suites_without_instances(refused, tmp_path, monkeypatch):
    store = ("--store", tmp_path / "r.sqlite")
    assert "'gone-*' matches no bundled instance and is no file" in refused("bench", "gone-*", *store)
    monkeypatch.setitem(suites.SUITES, "void", suites.Suite("for a test", {}))
    assert "nothing to do" in refused("bench", "void", *store)
    assert "nothing to do" in refused("bench", TINY, "--methods", "fifo", *store)
    assert not (tmp_path / "r.sqlite").exists()


def test_words_that_mean_nothing(refused, tmp_path):
    store = ("--store", tmp_path / "r.sqlite")
    assert "there is no method 'magic'" in refused("bench", TINY, "--methods", "magic", *store)
    assert "no run ends as 'crasht'; runs end as: " in refused("bench", TINY, "--again", "crasht", *store)


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


def test_the_command_of_a_report(call, tmp_path):
    store, folder = make_store(tmp_path / "r.sqlite"), tmp_path / "new" / "out"
    code, out, err = call("report", store, "-o", folder, "--title", "Mine", "--baseline", "greedy", "--pictures", "0")
    assert (code, err) == (0, "")
    assert out == f"{folder / 'index.html'}\n"
    assert "<h1>Mine</h1>" in (folder / "index.html").read_text()


def test_stores_that_are_none(refused, tmp_path):
    out = tmp_path / "out"
    assert "there is no such store" in refused("report", tmp_path / "none.sqlite", "-o", out)
    (tmp_path / "text.sqlite").write_text("no database at all, but a text that is long enough to be looked at twice")
    assert "not a store of results" in refused("report", tmp_path / "text.sqlite", "-o", out)
    with Store(tmp_path / "empty.sqlite"):
        pass
    assert "has no results" in refused("report", tmp_path / "empty.sqlite", "-o", out)
    assert not out.exists()


def test_a_damaged_store(refused, tmp_path):
    store = make_store(tmp_path / "r.sqlite", seeds=50)
    size = store.stat().st_size
    with store.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff" * (size - size // 2))
    assert "is damaged" in refused("report", store, "-o", tmp_path / "out")


def test_a_report_of_a_store_of_a_newer_version(refused, tmp_path):
    store = make_store(tmp_path / "r.sqlite")
    connection = sqlite3.connect(store)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert "newer ddlopt" in refused("report", store, "-o", tmp_path / "out")


def test_folders_that_will_not_do(refused, tmp_path):
    store = make_store(tmp_path / "r.sqlite")
    assert "do not belong to a report" in refused("report", store, "-o", tmp_path)
    assert "cannot be written" in refused("report", store, "-o", store)
    assert "cannot be written" in refused("report", store, "-o", "/proc/nothing")
    full = tmp_path / "out"
    (full / "assets").mkdir(parents=True)
    (full / "report.json").write_text("[]")
    (full / "assets" / "report.css").mkdir()
    assert "cannot be written" in refused("report", store, "-o", full)


@pytest.mark.parametrize("option", [("--target-gap", "-1"), ("--pictures", "-1"), ("--baseline", "nothing")])
def test_options_out_of_range(refused, tmp_path, option):
    store = make_store(tmp_path / "r.sqlite")
    err = refused("report", store, "-o", tmp_path / "out", *option)
    assert "at least 0" in err or "there are: crash, exact, greedy, ideal, liar" in err
    assert not (tmp_path / "out").exists()
