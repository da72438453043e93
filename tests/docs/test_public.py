"""The page of what is public names all that there is, and nothing else."""

import re
from importlib import import_module
from pathlib import Path

import typer.main

import ddlopt
from ddlopt.cli import app

PAGE = (Path(__file__).parents[2] / "docs/reference/public.md").read_text(encoding="utf-8")


def section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL).group(1)


def test_every_name_of_the_front_door_is_listed_once():
    table = section("Python").partition("By longer names")[0]
    named = [name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(ddlopt.__all__)


def test_every_command_is_listed_once():
    listed = section("Commands").partition(": names")[0]
    assert re.findall(r"`([a-z-]+)`", listed) == sorted(typer.main.get_command(app).commands)


def test_longer_names_and_entry_points_are_there():
    points, others = {}, set()
    for row in re.findall(r"^\| (.*?) \|", section("Python"), re.MULTILINE):
        names = set(re.findall(r"`(ddlopt\.[\w.]+)`", row))
        if row.startswith("entry points"):
            points = names
        else:
            others |= names
    for name in others:
        module, _, last = name.rpartition(".")
        assert hasattr(import_module(module if last[0].isupper() else name), last if last[0].isupper() else "__name__")
    pyproject = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert points == set(re.findall(r'entry-points\."(ddlopt\.\w+)"', pyproject))
    assert len(others) > 5
