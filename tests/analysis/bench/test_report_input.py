"""What a report refuses, each with one line and exit code 2."""

import sqlite3

import pytest
from report_cases import make_store

from ddlopt.analysis.bench import Store


def refused(call, *arguments):
    code, out, err = call("report", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("ddlopt: ")
    assert err.count("\n") == 1
    return err


def test_the_command(call, tmp_path):
    store, folder = make_store(tmp_path / "r.sqlite"), tmp_path / "new" / "out"
    code, out, err = call("report", store, "-o", folder, "--title", "Mine", "--baseline", "greedy", "--pictures", "0")
    assert (code, err) == (0, "")
    assert out == f"{folder / 'index.html'}\n"
    assert "<h1>Mine</h1>" in (folder / "index.html").read_text()


def test_stores_that_are_none(call, tmp_path):
    out = tmp_path / "out"
    assert "there is no such store" in refused(call, tmp_path / "none.sqlite", "-o", out)
    (tmp_path / "text.sqlite").write_text("no database at all, but a text that is long enough to be looked at twice")
    assert "not a store of results" in refused(call, tmp_path / "text.sqlite", "-o", out)
    with Store(tmp_path / "empty.sqlite"):
        pass
    assert "has no results" in refused(call, tmp_path / "empty.sqlite", "-o", out)
    assert not out.exists()


def test_a_damaged_store(call, tmp_path):
    store = make_store(tmp_path / "r.sqlite", seeds=50)
    size = store.stat().st_size
    with store.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff" * (size - size // 2))
    assert "is damaged" in refused(call, store, "-o", tmp_path / "out")


def test_a_store_of_a_newer_version(call, tmp_path):
    store = make_store(tmp_path / "r.sqlite")
    connection = sqlite3.connect(store)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert "newer ddlopt" in refused(call, store, "-o", tmp_path / "out")


def test_folders_that_will_not_do(call, tmp_path):
    store = make_store(tmp_path / "r.sqlite")
    assert "holds something else" in refused(call, store, "-o", tmp_path)
    assert "cannot be written" in refused(call, store, "-o", store)
    assert "cannot be written" in refused(call, store, "-o", "/proc/nothing")
    full = tmp_path / "out"
    (full / "assets").mkdir(parents=True)
    (full / "report.json").write_text("[]")
    (full / "assets" / "report.css").mkdir()
    assert "cannot be written" in refused(call, store, "-o", full)


@pytest.mark.parametrize("option", [("--target-gap", "-1"), ("--pictures", "-1"), ("--baseline", "nothing")])
def test_options_out_of_range(call, tmp_path, option):
    store = make_store(tmp_path / "r.sqlite")
    err = refused(call, store, "-o", tmp_path / "out", *option)
    assert "at least 0" in err or "there are: crash, exact, greedy, ideal, liar" in err
    assert not (tmp_path / "out").exists()
