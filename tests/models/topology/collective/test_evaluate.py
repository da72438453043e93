"""The check of collectives: objectives by hand, and every way in which a plan may be wrong."""

from fractions import Fraction

import pytest

from ddlopt.models.errors import InstanceError, SolutionError
from ddlopt.models.topology import CollectiveInstance, CollectivePlan, TopologyProblem, Tree
from ddlopt.models.topology.collective.evaluate import evaluate_collective

TWO_WAY = [(0, 1, 2.0), (1, 0, 2.0), (1, 2, 1.0), (2, 1, 1.0)]


def network(links=TWO_WAY, accelerators=3, switches=0, **more):
    return CollectiveInstance(
        name="small", accelerators=accelerators, switches=switches,
        links=[{"source": i, "target": j, "bytes_per_s": b} for i, j, b in links],
        **{"collective": "all-gather", "collective_bytes": 6.0} | more,
    )  # fmt: skip


def plan(*trees):
    return CollectivePlan(instance="small", trees=[Tree(share=s, root=r, gather=g, spread=t) for s, r, g, t in trees])


GATHER = plan(
    ("1/3", 0, (), ((0, 1), (1, 2))), ("1/3", 1, (), ((1, 0), (1, 2))), ("1/3", 2, (), ((2, 1), (1, 0)))
)  # fmt: skip


def broken(instance, solution):
    found = evaluate_collective(instance, solution)
    assert found.objective is None
    return [each.kind for each in found.violations]


def test_the_busiest_link_counts():
    found = evaluate_collective(network(), GATHER, exact=True)
    assert found.feasible
    assert found.objective == Fraction(4)  # two thirds of six bytes over 1 -> 2, one byte a second
    assert found.details["bandwidth_bytes_per_s"] == Fraction(3, 2)
    assert (found.details["hops"], found.details["tax"]) == (2, 1)
    assert evaluate_collective(network(), GATHER).objective == 4.0


def test_both_phases_of_an_all_reduce_share_the_links():
    instance = network(collective="all-reduce")
    tree = ("1", 1, ((0, 1), (2, 1)), ((1, 0), (1, 2)))
    assert evaluate_collective(instance, plan(tree), exact=True).objective == 6
    around = ("1", 0, ((2, 1), (1, 0)), ((0, 1), (1, 2)))
    assert evaluate_collective(instance, plan(around), exact=True).objective == 6
    assert evaluate_collective(instance, plan(("1/2", *tree[1:]), ("1/2", *around[1:])), exact=True).feasible


def test_shares_of_one_link_used_twice_add_up():
    """A tree whose two paths cross the same switch and link counts there twice."""
    instance = network([(0, 2, 4.0), (2, 0, 1.0), (2, 1, 1.0), (1, 2, 1.0)], 2, 1, collective="all-to-all")
    solution = plan(("1/2", 0, (), ((0, 2, 1),)), ("1/2", 1, (), ((1, 2, 0),)))
    short = evaluate_collective(instance, solution, exact=True)
    assert (short.objective, short.details["hops"]) == (3, 2)
    loop = plan(("1/2", 0, (), ((0, 2, 0, 2, 1),)), ("1/2", 1, (), ((1, 2, 0),)))
    long = evaluate_collective(instance, loop, exact=True)
    assert (long.objective, long.details["hops"]) == (6, 4)


@pytest.mark.parametrize(
    ("solution", "kinds"),
    [
        (plan(("1/3", 0, (), ((0, 2), (0, 1)))), ["path follows links"]),
        (plan(("1/3", 3, (), ((0, 1), (1, 2)))), ["root is an accelerator"]),
        (plan(("1/3", 0, ((1, 0),), ((0, 1), (1, 2)))), ["all-gather has no such paths"]),
        (plan(("1/3", 0, (), ((0, 1),))), ["tree reaches all accelerators"]),
        (plan(("1/3", 0, (), ((0, 1), (1, 2), (2, 1)))), ["tree reaches each accelerator once"]),
        (plan(("1/3", 0, (), ((1, 2), (2, 1)))), ["tree reaches all accelerators"]),
        (plan(("1/3", 0, (), ((0, 1), (1, 0)))), ["tree reaches each accelerator once"]),
        (CollectivePlan(instance="small", trees=GATHER.trees[:2]), ["shares add up"]),
        (CollectivePlan(instance="small", trees=(*GATHER.trees, GATHER.trees[0])), ["shares add up"]),
    ],
)
def test_every_way_to_be_wrong(solution, kinds):
    assert [each for each in broken(network(), solution) if each != "shares add up" or kinds == [each]] == kinds


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_what_is_wrong_with_a_tree_is_nothing_of_others(order):
    """Shares of trees behind a broken one count as well: in whatever order trees are given, the same is wrong."""
    cut = GATHER.trees[0].model_copy(update={"spread": ((0, 1),)})
    trees = (cut, *GATHER.trees[1:])
    solution = CollectivePlan(instance="small", trees=[trees[place] for place in order])
    assert broken(network(), solution) == ["tree reaches all accelerators"]


def test_ways_of_other_collectives():
    reduce = network(collective="all-reduce")
    assert broken(reduce, plan(("1/2", 1, ((0, 1), (2, 1)), ((1, 0), (1, 2))))) == ["shares add up"]
    assert broken(reduce, plan(("1", 1, (), ((1, 0), (1, 2))))) == ["tree reaches all accelerators"]
    scatter = network(collective="reduce-scatter")
    first = evaluate_collective(scatter, plan(("1/3", 1, ((0, 1), (2, 1)), ((1, 0), (1, 2))))).violations[0]
    assert (first.kind, first.lhs, first.rhs) == ("reduce-scatter has no such paths", 2, 0)
    alltoall = network(collective="all-to-all")
    assert "all-to-all has one path a tree" in broken(alltoall, plan(("1/3", 0, (), ((0, 1), (1, 2)))))
    assert "path starts at the root" in broken(alltoall, plan(("1/3", 0, (), ((1, 2),))))
    assert broken(network(collective="broadcast", root=0), plan(("1", 1, (), ((1, 0), (1, 2)))))[:1] == [
        "shares add up"
    ]
    switch = network([(0, 2, 1.0), (2, 0, 1.0), (2, 1, 1.0), (1, 2, 1.0)], 2, 1)
    ends = evaluate_collective(switch, plan(("1/2", 0, (), ((0, 2), (2, 1))))).violations
    assert {(each.lhs, each.rhs) for each in ends if each.kind == "path joins accelerators"} == {(2, 1)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"links": [(0, 1, 1.0), (1, 0, 1.0), (2, 1, 1.0)]}, "accelerator 2 cannot be reached from accelerator 0"),
        ({"links": [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0)]}, "accelerator 2 does not reach accelerator 0"),
        ({"links": [(0, 1, 0.0)]}, "bytes_per_s"),
        ({"links": [(0, 1, 1.0), (0, 1, 1.0)]}, "as links[0] is; give their sum once"),
        ({"links": [(0, 0, 1.0)]}, "to itself"),
        ({"links": [(0, 7, 1.0)]}, "there are 3 nodes (0..2)"),
        ({"accelerators": 1}, "accelerators"),
        ({"collective": "broadcast"}, "root is None"),
        ({"root": 1}, "an all-gather has no root"),
        ({"collective_bytes": 0.0}, "collective_bytes"),
        ({"collective_bytes": float("inf")}, "collective_bytes"),
    ],
)
def test_odd_data_are_one_line(change, words):
    links = change.pop("links", TWO_WAY)
    data = {
        "family": "topology", "problem": "collective", "name": "small", "accelerators": 3, "collective_bytes": 6.0,
        "links": [{"source": i, "target": j, "bytes_per_s": b} for i, j, b in links], **change,
    }  # fmt: skip
    with pytest.raises(InstanceError) as told:
        TopologyProblem.from_data(data)
    assert words in str(told.value)
    assert "\n" not in str(told.value)


def test_shares_are_fractions():
    for share in ("1/0", "-1/2", "0.5", "x"):
        with pytest.raises(SolutionError, match="share"):
            CollectivePlan.from_data(
                {
                    "family": "topology",
                    "problem": "collective",
                    "instance": "small",
                    "trees": [{"share": share, "root": 0}],
                }
            )
