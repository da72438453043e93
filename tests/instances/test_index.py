"""The library's index says what the instances, their records and the methods say."""

import json
from itertools import groupby

import pytest

from ddlopt import instances
from ddlopt.analysis.listing import index_data, index_text, listing_file
from ddlopt.instances import index
from ddlopt.models.catalogue import FAMILY_NAMES, family, problems
from ddlopt.models.problem import path_of

ANEW = "run python -m ddlopt.analysis.records --index"


def smallest():
    """The two smallest instances of each problem."""
    by_problem = sorted(index.read().instances.values(), key=lambda each: (each.problem, each.size))
    return [each.name for _, group in groupby(by_problem, key=lambda each: each.problem) for each in list(group)[:2]]


def test_it_has_every_instance_and_problem():
    known = index.read()
    assert list(known.instances) == list(instances.names()), ANEW
    told = {path: (each.title, each.counts, each.limited_by) for path, each in problems().items()}
    assert {path: (each.title, each.counts, each.limited_by) for path, each in known.problems.items()} == told, ANEW
    assert list(known.problems) == list(problems())
    assert {each.problem for each in known.instances.values()} == set(problems())


def test_the_problems_are_those_of_the_families():
    kinds = {name: family(name).instance.variants for name in FAMILY_NAMES}
    named = {f"{name}/{problem}" for name, variants in kinds.items() for problem in variants}
    assert set(problems()) == named | {name for name, variants in kinds.items() if not variants}


def test_it_says_what_the_instances_say():
    committed = json.loads(listing_file().read_text(encoding="utf-8"))["instances"]
    anew = json.loads(index_text(index_data(smallest())))["instances"]
    assert {name: committed[name] for name in anew} == anew, ANEW


@pytest.mark.slow
def test_it_is_written_as_it_stands():
    assert listing_file().read_text(encoding="utf-8") == index_text(index_data()), ANEW


def test_what_is_read_is_what_is_written():
    listed = index.read().instances["topology/danoint"]
    known, instance = instances.record("topology/danoint"), instances.load("topology/danoint")
    assert (listed.family, listed.problem, listed.size) == ("topology", path_of(instance), 8)
    assert (listed.objective, listed.bound) == (known.found.objective, known.bound.value)
    assert (listed.found_by, listed.bound_by) == (known.found.method, known.bound.method)
    assert listed.proven
    assert "branch-and-bound" in listed.methods
    assert "circulant" not in listed.methods


def test_licences():
    listed = index.read().instances
    assert listed["topology/danoint"].licence == "Apache-2.0"
    assert listed["aggregation/abilene-congestion"].licence == "CC-BY-4.0"


def test_without_a_file_it_is_empty(tmp_path):
    assert index.read(tmp_path / "index.json") == index.Index({}, {})
