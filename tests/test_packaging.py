"""What is installed is what is in the tree: no package forgotten, nothing added."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DESCRIPTION = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, SETUP = DESCRIPTION["project"], DESCRIPTION["tool"]["setuptools"]
ROOMS = {package: ROOT / folder for package, folder in SETUP["package-dir"].items()}
"""Top-level packages and the folders they are installed from."""


@cache
def tree() -> dict[str, Path]:
    """Everything to be installed: path inside the wheel, file in the tree."""
    code, data = (".py", ".cc", "py.typed"), (".toml", ".json", ".json.gz", "INDEX.md", ".npz", ".ddlcert")
    ends = (*code, *data, ".html", ".css", ".js")
    return {
        f"{package.replace('.', '/')}/{file.relative_to(folder).as_posix()}": file
        for package, folder in ROOMS.items()
        for file in folder.rglob("*.*")
        if file.name.endswith(ends)
    }


@pytest.fixture
def built():
    """The folder with the wheel and the sdist that `make wheel` has built."""
    if "DDLOPT_DIST" not in os.environ:
        pytest.skip("needs a built wheel: `make wheel` builds one and sets DDLOPT_DIST")
    return Path(os.environ["DDLOPT_DIST"])


def test_every_folder_with_modules_is_a_package():
    folders = {Path(name).parent.as_posix() for name in tree() if name.endswith(".py")}
    assert [folder for folder in folders if f"{folder}/__init__.py" not in tree()] == []


def test_the_wheel_holds_the_tree_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
        metadata = {name.partition(".dist-info/")[2] for name in archive.namelist() if ".dist-info/" in name}
    assert sorted(files) == sorted(tree())
    assert [name for name, file in tree().items() if file.read_bytes() != files[name]] == []
    assert "licenses/LICENSE" in metadata
    assert "entry_points.txt" in metadata


def test_the_sdist_holds_the_tree_and_the_tests(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {file.relative_to(ROOT).as_posix() for file in tree().values()}
    wanted |= {
        "LICENSE",
        "README.md",
        "Makefile",
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "pyproject.toml",
        "tests/test_packaging.py",
    }
    assert wanted - names == set()


def test_the_wheel_says_what_it_is(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    assert metadata["Version"] == PROJECT["version"]
    assert metadata["License-Expression"] == PROJECT["license"]
    assert metadata["License-File"] == "LICENSE"
    assert set(PROJECT["optional-dependencies"]) == set(metadata.get_all("Provides-Extra"))


def test_the_sdist_holds_nothing_that_was_left_over(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    left_over = re.compile(r"(^|/)(\.(?!ci)|__pycache__|build/|dist/)|\.(py[cod]|nb[ic]|sqlite.*|lock)$")
    assert [name for name in names if left_over.search(name)] == []


def test_pythons():
    """The oldest one is what the code is checked for; every classifier is for one that is not older."""
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert DESCRIPTION["tool"]["mypy"]["python_version"] == oldest
    assert DESCRIPTION["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    named = [line.rpartition(" :: ")[2] for line in PROJECT["classifiers"] if ":: Python :: 3." in line]
    assert named[0] == oldest
    assert named == [f"3.{minor}" for minor in range(int(oldest.partition(".")[2]), 15)]


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    fields = dict(re.findall(r'^([a-z-]+): *"?(.*?)"?$', citation, re.MULTILINE))
    assert fields["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(fields)
    assert fields["version"] == PROJECT["version"]
    assert fields["license"] == PROJECT["license"]
    assert fields["type"] == "software"


def test_types_are_announced():
    assert (ROOT / "ddlopt" / "py.typed").is_file()
    assert "py.typed" in SETUP["package-data"]["*"]
    assert "Typing :: Typed" in PROJECT["classifiers"]


def test_nothing_is_importable_under_its_folder_name():
    """A second ``models`` beside ``ddlopt.models`` would be a second copy of every class."""
    code = "import ddlopt, ddlopt.cli; ddlopt.load; import sys; print(*(n for n in sys.modules if '.' not in n))"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, cwd="/", check=True)
    loaded, folders = set(run.stdout.split()), {folder.name for folder in ROOMS.values()} - {"ddlopt"}
    assert "ddlopt" in loaded
    assert loaded.isdisjoint(folders)
    assert folders.isdisjoint(sys.modules)
