"""Sets of instances that stay as they are."""

import json

import pytest

import ddlopt
from ddlopt import instances
from ddlopt.analysis.bench import sets
from ddlopt.analysis.bench.suites import members
from ddlopt.instances import index
from ddlopt.instances.library import certificates


@pytest.mark.parametrize("name", sets.TITLES)
def test_instances_of_a_set_are_what_they_were(name):
    listed = index.read().instances
    assert {each: listed[each].digest for each in sets.members(name)} == dict(sets.members(name))


def test_sets_do_not_overlap_where_they_say_so():
    assert not set(sets.members("open")) & set(sets.members("standard"))
    assert not set(sets.members("hard")) & {*sets.members("tiny"), *sets.members("standard")}


def test_tiny_and_standard_have_every_problem_of_the_time():
    listed = index.read().instances
    there = {listed[name].problem for name in sets.members("standard")}
    assert {listed[name].problem for name in sets.members("tiny")} == there
    assert len(there) >= 27


def test_seconds_are_those_of_the_certificate_or_of_the_run_that_proves(monkeypatch):
    name = "deployment/pipeline-tiny-l4-k4"
    known, listed = instances.record(name), index.read().instances[name]
    monkeypatch.setattr(certificates, "entries", dict)
    assert sets.seconds(listed) == known.bound.seconds
    without = known.model_copy(update={"bound": known.bound.model_copy(update={"seconds": None})})
    monkeypatch.setattr(sets, "record", lambda name: without)
    assert sets.seconds(listed) == known.found.seconds
    monkeypatch.setattr(sets, "record", lambda name: None)
    assert sets.seconds(listed) is None
    monkeypatch.setattr(certificates, "entries", lambda: {name: {"proving_s": 7.5}})
    assert sets.seconds(listed) == 7.5


def test_farthest_first(monkeypatch):
    monkeypatch.setattr(sets, "record", lambda name: None)

    def made(name, size):
        fields = dict.fromkeys(index.Listed.__dataclass_fields__) | {"sizes": {"n": size}}
        return index.Listed(**fields | {"name": name})

    own = [made(f"f/{size}", size) for size in (10, 11, 12, 1000, 90)]
    assert sets.farthest(own, 3) == ["f/10", "f/1000", "f/90"]
    assert sets.farthest(own[:2], 5) == ["f/10", "f/11"]


def test_the_file_is_as_it_is_written():
    made = {name: dict(sets.members(name)) for name in sets.TITLES}
    assert json.loads(sets.text(made)) == made


def test_a_sweep_takes_a_set(call, tmp_path):
    names, methods = members(["tiny"])
    assert names == list(sets.members("tiny"))
    assert all("auto" in asked for asked in methods.values())
    code, out, _ = call("bench", "tiny", "--methods", "auto", "--store", tmp_path / "r.sqlite", "--dry-run")
    assert code == 0
    assert f"{len(names)} instances" in out
    assert ddlopt.load(names[0]).digest == sets.members("tiny")[names[0]]
