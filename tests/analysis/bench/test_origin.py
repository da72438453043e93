"""What a run says of the machine and the commit that it comes from."""

import subprocess

import pytest

from ddlopt.analysis.bench import origin


@pytest.fixture
def checkout(tmp_path):
    source = tmp_path / "package" / "module.py"
    source.parent.mkdir()
    source.write_text("x = 1\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=me", "-c", "user.email=me@here", "commit", "--quiet", "--message", "first")
    git(tmp_path, "tag", "v1")
    return source


def git(folder, *words):
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout.strip()


def test_a_checkout_has_a_commit(checkout):
    commit = git(checkout.parent, "rev-parse", "HEAD")
    assert len(commit) == 40
    (checkout.parent / "notes.txt").write_text("not of the source")
    assert origin.revision(checkout) == commit
    origin.revision.cache_clear()
    checkout.write_text("x = 2\n")
    assert origin.revision(checkout) == f"{commit}-dirty"


def test_a_package_in_the_checkout_of_something_else_has_none(checkout):
    installed = checkout.parent / "installed.py"
    installed.write_text("")
    assert origin.revision(installed) is None


def test_no_checkout_and_no_git(tmp_path, checkout, monkeypatch):
    assert origin.revision(tmp_path.parent / "alone.py") is None
    monkeypatch.setenv("PATH", "")
    assert origin.revision(checkout) is None


def test_the_machine():
    found = origin.machine()
    assert found["cpu"]
    assert found["cores"] >= 1
    assert found["memory_bytes"] > 10**8
    assert found["system"]
