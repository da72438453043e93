"""Lists of hosts and rank files: each host once, ranks in the order of the places."""

import pytest
from refusals import one_line

from ddlopt.instances.writers import export_plan, formats_of, import_plan
from ddlopt.models.cluster import GangPlaces, PlacementInstance
from ddlopt.models.errors import OptionError


def made(**changes):
    leaves = [{"name": "r0", "hosts": 3, "host_names": ["a", "b", "c"]}, {"name": "r1", "hosts": 2}]
    gangs = [{"name": "one", "hosts": 3}, {"name": "two", "hosts": 1}, {"name": "three", "hosts": 2}]
    data = {"name": "small", "leaves": leaves, "gangs": gangs, "objective": "max_gangs"}
    return PlacementInstance.from_data(data | changes)


PLACES = GangPlaces(instance="small", places=(((1, 1), (0, 2)), ((0, 1),), ()))


def body(target, **options):
    text = export_plan(made(), PLACES, target, **options)
    return [line for line in text.split("\n")[3:] if line and not line.startswith(("#=", "# What"))]


def test_hosts_are_given_once_in_the_order_of_ranks():
    assert body("node-list") == ["# gang: hosts in the order of ranks", "one: r1-0,a,b", "two: c", "three: -"]
    ranks = ["# one", "rank 0=r1-0 slot=0", "rank 1=a slot=0", "rank 2=b slot=0"]
    assert body("rank-file") == [*ranks, "# two", "rank 0=c slot=0", "# three is left out"]
    assert body("rank-file", gang="one") == ranks


@pytest.mark.parametrize("target", ["node-list", "rank-file", "table"])
def test_what_is_written_is_read_back(tmp_path, target):
    assert target in formats_of(made())
    path = tmp_path / "plan.txt"
    path.write_text(export_plan(made(), PLACES, target), encoding="utf-8")
    assert import_plan(made(), path) == PLACES


def test_names_that_are_none_are_refused_in_a_line():
    with one_line(OptionError, "gang is 'four'; there are: one, two, three"):
        body("rank-file", gang="four")
    odd = made(leaves=[{"name": "a rack", "hosts": 5}])
    with one_line(OptionError, "'a rack-0'"):
        export_plan(odd, GangPlaces(instance="small", places=(((0, 3),), ((0, 1),), ())), "node-list")
    twice = made(leaves=[{"name": "r0", "hosts": 1, "host_names": ["r1-0"]}, {"name": "r1", "hosts": 4}])
    with one_line(OptionError, "'r1-0' twice"):
        export_plan(twice, GangPlaces(instance="small", places=(((1, 3),), ((0, 1),), ())), "node-list")
