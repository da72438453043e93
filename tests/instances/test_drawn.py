"""Instances that are drawn from a seed."""

import pytest

import ddlopt
from ddlopt.instances import drawn
from ddlopt.models.catalogue import problem_of, problems
from ddlopt.models.errors import UnknownNameError

PATHS = tuple(problems())


def test_every_problem_is_drawn():
    assert set(drawn.RANGES) == set(PATHS)
    names = drawn.names("drawn:12")
    assert len(names) == len(set(names)) == drawn.COUNT * len(PATHS)


@pytest.mark.parametrize("path", PATHS)
def test_the_first_of_two_seeds(path):
    first, other = (ddlopt.load(f"drawn:{seed}/{path}/1") for seed in (3, 4))
    assert problem_of(first).path == problem_of(other).path == path
    assert first.name == f"3-{path.replace('/', '-')}-1"
    assert first.digest != other.digest
    drawn._load.cache_clear()
    assert ddlopt.load(f"drawn:3/{path}/1").digest == first.digest


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("seed", range(5))
def test_all_of_a_seed(path, seed):
    made = [drawn.load(name) for name in drawn.names(f"drawn:{seed}/{path}")]
    assert len({instance.digest for instance in made}) > drawn.COUNT // 2


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("drawn:7", 10 * len(PATHS)),
        ("drawn:7/topology", 10),
        ("drawn:7/gossip/period", 10),
        ("drawn:7/gossip/period/9", 1),
    ],
)
def test_what_a_pattern_means(pattern, count):
    assert len(drawn.names(pattern)) == count
    assert len({*drawn.names(pattern), *drawn.names("drawn:07")}) == 10 * len(PATHS)


def test_a_family_is_all_its_problems():
    assert len(drawn.names("drawn:7/gossip")) == 10 * sum(path.startswith("gossip/") for path in PATHS)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("drawn:", "whole number"),
        ("drawn:-1", "whole number"),
        ("drawn:1.5/topology", "whole number"),
        ("drawn:7/gosip", "there is no 'gosip'"),
        ("drawn:7/topology/11", "from 1 to 10"),
        ("drawn:7/topology/0", "from 1 to 10"),
        ("drawn:7/gossip", "means 50 instances"),
    ],
)
def test_names_that_are_none(name, told):
    with pytest.raises(UnknownNameError, match=told):
        ddlopt.load(name)


def test_a_sweep_takes_them(call, tmp_path):
    code, out, _ = call("bench", "drawn:7/compression/sfb", "--store", tmp_path / "r.sqlite", "--dry-run")
    assert (code, out.partition(" of")[0]) == (0, "10 solves")
