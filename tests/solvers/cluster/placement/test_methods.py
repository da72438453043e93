"""Methods for places against all places; the rules of schedulers on examples by hand."""

import json

import pytest
from placement_brute_force import brute_force, drawn
from shared_data import shared_data
from volume import for_each, seeds

import ddlopt
from ddlopt.instances.readers import convert
from ddlopt.models.cluster import GangPlaces, PlacementInstance, bound, evaluate
from ddlopt.models.errors import InstanceError
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.cluster.placement.free import cost
from ddlopt.solvers.cluster.placement.gang_exchange import GangExchange
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import lp_relaxation
from ddlopt.solvers.heuristic import Clock

RULES = ("kueue", "slurm-block", "hived-cells", "gang-exchange", "kueue:order=largest", "kueue:unconstrained=true")


def cluster(leaves, gangs, objective="pairs", **more):
    """Leaves by block, as lists of free hosts; gangs as hosts, or hosts and a level."""
    listed = [
        {"name": f"b{block}-r{rack}", "inside": [f"b{block}"], "hosts": hosts}
        for block, racks in enumerate(leaves)
        for rack, hosts in enumerate(racks)
    ]
    asked = [gang if isinstance(gang, tuple) else (gang, "any") for gang in gangs]
    return PlacementInstance.from_data(
        {
            "name": "by-hand",
            "levels": ["block", "rack"],
            "leaves": listed,
            "gangs": [{"name": f"g{n}", "hosts": hosts, "within": level} for n, (hosts, level) in enumerate(asked)],
            "objective": objective,
        }
        | more
    )


def of(name, instance):
    return method(name, "cluster").solve(instance, Limits(gap=0))


def better_or_equal(instance, one, other):
    return one <= other if instance.sense == "minimize" else one >= other


@for_each("seed", seeds(13, 600))
def test_exact_methods_find_the_best_of_all_places_and_no_rule_is_better(seed):
    try:
        instance = drawn(seed)
    except InstanceError:
        return
    best = brute_force(instance)
    for name in ("exact", "domain-uses"):
        found = of(name, instance)
        if best is None:
            assert found.status is Status.INFEASIBLE
        else:
            assert (found.objective, found.status, found.checked) == (best, Status.OPTIMAL, True)
    for name in RULES:
        found = of(name, instance)
        if found.solution is not None:
            assert best is not None
            assert better_or_equal(instance, best, found.objective)
            assert evaluate(instance, found.solution, exact=True).feasible


@pytest.mark.parametrize("name", RULES)
def test_the_same_seed_gives_the_same_places(name):
    instance = cluster([[5, 3, 4], [4, 4]], [6, 5, 4, 3, 2], "crossings")
    first, second = (of(name, instance).solution for _ in range(2))
    assert first == second
    assert first is not None


def test_the_relaxation_already_knows_that_every_leaf_is_used():
    """Hosts that are all needed: a pair for each leaf that is no larger than a gang, and 4/3 for that of 4."""
    instance = cluster([[1, 2, 4, 2]], [3, 3, 3])
    found = lp_relaxation(method("domain-uses", "cluster").formulation, instance).objective
    assert found == pytest.approx(3 + 4 / 3)
    assert of("exact", instance).objective == 5


def places_of(name, instance):
    answer = of(name, instance).solution
    assert answer is not None
    return answer.places


def test_kueue_takes_the_smallest_domain_that_suffices():
    # One rack: that of 4, not that of 8. One block: b1 with 6 hosts, not b0 with 12; in it the rack with most first.
    instance = cluster([[8, 4], [3, 3]], [(4, "rack"), 6])
    assert places_of("kueue", instance) == (((1, 4),), ((0, 6),))
    wider = cluster([[4, 4, 4], [5, 2]], [7, 9])
    assert places_of("kueue", wider) == (((3, 5), (4, 2)), ((0, 4), (1, 4), (2, 1)))


def test_kueue_takes_several_of_the_outermost_level_by_most_hosts():
    # No block has 9: the one with most free hosts, then the smallest that suffices for the rest.
    instance = cluster([[4, 3], [2], [3]], [9])
    assert places_of("kueue", instance) == (((0, 4), (1, 3), (2, 2)),)
    # Unconstrained: leaves by most hosts, whatever block they are in; the last one by best fit.
    free = cluster([[4, 1], [3, 2]], [7])
    assert places_of("kueue:unconstrained=true", free) == (((0, 4), (2, 3)),)
    assert places_of("kueue", cluster([[4, 1], [3, 2]], [5])) == (((0, 4), (1, 1)),)
    # A block has 5, and yet the leaves are chosen at once: the last host is where only one is free.
    apart = cluster([[4, 2], [3, 1]], [5])
    assert places_of("kueue", apart) == (((0, 4), (1, 1)),)
    assert places_of("kueue:unconstrained=true", apart) == (((0, 4), (3, 1)),)


def test_what_a_level_requires_is_never_given_from_elsewhere():
    instance = cluster([[4, 4]], [(4, "rack"), (4, "rack"), (1, "rack")], "max_gangs")
    assert places_of("kueue", instance) == (((0, 4),), ((1, 4),), ())
    assert of("kueue", cluster([[3, 3]], [(2, "rack"), (2, "rack"), (2, "rack")])).status is Status.NO_SOLUTION
    for name in (*RULES, "slurm-block"):
        # Of two blocks the gang has to be in one, in several racks where that is needed; both together are none.
        assert {leaf for leaf, _ in places_of(name, cluster([[3, 1], [4, 4]], [(6, "block")]))[0]} == {2, 3}
        assert of(name, cluster([[4], [4]], [(6, "block")], "max_gangs")).objective == 0


def test_slurm_takes_the_fullest_block_that_suffices():
    # Base blocks of 4. A gang of 6 needs a block of two: leaves 0 and 1 have 8 free, 2 and 3 have 6.
    instance = cluster([[4, 4, 4, 2]], [6])
    assert places_of("slurm-block", instance) == (((2, 4), (3, 2)),)
    # A gang of 3 needs one base block: that with 3 free; of two alike the last.
    assert places_of("slurm-block", cluster([[4, 3, 3]], [3])) == (((2, 3),),)


def test_slurm_counts_no_more_base_blocks_than_the_gang_needs():
    # 4 hosts are one base block; no leaf has 4, so that the job would wait. Ours looks at larger blocks then.
    instance = cluster([[5, 3, 3]], [5, 4])
    assert of("slurm-block:base=4,waits=true", instance).solution is None
    assert places_of("slurm-block:base=4", cluster([[3, 3, 3, 1]], [4])) == (((0, 3), (3, 1)),)


def test_hived_splits_cells_late():
    # The second gang goes into the rack that is split already, though the other one that suffices is as small.
    instance = cluster([[4, 4]], [2, 2])
    assert places_of("hived-cells", instance) == (((0, 2),), ((0, 2),))
    # A block: its whole racks as far as they are needed, then what is split.
    split = cluster([[4, 4, 4], [1]], [1, (7, "block")])
    assert places_of("hived-cells", split) == (((3, 1),), ((0, 4), (1, 3)))
    several = cluster([[4, 4, 4]], [1, 7])
    assert places_of("hived-cells", several) == (((0, 1),), ((0, 3), (1, 4)))
    # Whole racks that are needed to the last host before one that is split; of those, the one that suffices.
    exactly = cluster([[4, 4, 4]], [1, 8])
    assert places_of("hived-cells", exactly)[1] == ((1, 4), (2, 4))
    assert places_of("hived-cells", cluster([[4, 4, 4]], [3, 2, 6]))[2] == ((1, 2), (2, 4))
    # Racks that are full give nothing.
    assert places_of("hived-cells", cluster([[4, 4, 4]], [4, 3, 3, 2]))[3] == ((1, 1), (2, 1))


def test_gang_exchange_begins_with_a_start_and_ends_at_the_bound():
    instance = cluster([[4, 4], [4, 2]], [4, 4, 4, 2])
    best = of("gang-exchange", instance)
    assert best.status is Status.OPTIMAL
    assert best.details["rounds"] == 0
    start = GangPlaces(instance="by-hand", places=best.solution.places)
    again = method("gang-exchange", "cluster").solve(instance, Limits(gap=0), start=start)
    assert again.objective == bound(instance) == 4


def test_gang_exchange_finds_what_the_rules_do_not():
    """Racks of 20 that are filled in one way only: 11 + 9, 8 + 6 + 6, 8 + 6 + 6, 7 + 7 + 6."""
    sizes = [11, 9, 8, 8, 7, 7, 6, 6, 6, 6, 6]
    instance = cluster([[20] * 4], [(size, "rack") for size in sizes], "fits")
    assert of("kueue", instance).objective == 0
    assert of("gang-exchange", instance).objective == 1
    # 9 + 5 + 5 leaves a host of a rack idle, and all of them are needed: the model proves that there is no way.
    never = cluster([[20] * 4], [(9, "rack")] * 5 + [(5, "rack")] * 7, "fits")
    found = of("exact", never)
    assert (found.objective, found.bound, found.status) == (0, 0, Status.OPTIMAL)


@pytest.mark.parametrize("gangs", [[5, 3, 2], [4, 4, 2], [7, 2]])
@pytest.mark.parametrize("objective", ["pairs", "crossings"])
def test_the_search_counts_as_the_check_does(gangs, objective):
    instance = cluster([[4, 1], [3, 2]], gangs, objective)
    answer = of("kueue", instance).solution
    counted = (cost(instance, gang, dict(runs)) for gang, runs in zip(instance.gangs, answer.places, strict=True))
    assert sum(counted) == evaluate(instance, answer).objective


def test_gang_exchange_is_never_worse_than_its_start_and_the_rules():
    instance = cluster([[5, 3], [5, 6]], [3, 7, 3, 6], "crossings")
    best = of("gang-exchange", instance)
    unsearched = of("gang-exchange:rounds=0", instance)
    assert best.objective == bound(instance) < unsearched.objective
    # Runs of ranks may come to a leaf again.
    hosts = [[(leaf, 1) for leaf, count in runs for _ in range(count)] for runs in best.solution.places]
    none = method("gang-exchange:rounds=0", "cluster")
    good = GangPlaces(instance="by-hand", places=hosts)
    poor = GangPlaces(instance="by-hand", places=[[(0, 3)], [(1, 3), (2, 4)], [(3, 3)], [(0, 2), (2, 1), (3, 3)]])
    for start, value in ((good, best.objective), (poor, unsearched.objective)):
        assert evaluate(instance, start).feasible
        found = none.solve(instance, Limits(gap=0), start=start)
        assert (found.objective, found.message) == (value, "")


def test_gang_exchange_stops_where_the_bound_says_that_no_more_gangs_fit():
    instance = cluster([[4, 4]], [4, 4, 4], "max_gangs")
    found = of("gang-exchange", instance)
    assert (found.objective, found.bound, found.details["rounds"]) == (2, 2, 0)


def test_gang_exchange_stops_when_the_time_is_up():
    instance = cluster([[4, 4]], [4, 4, 4], "max_gangs")
    _, details = GangExchange().answer(instance, 0, Clock(Limits(1e-9), None), None)
    assert details == {"rounds": 0}


def test_what_gang_exchange_tells_on_the_way_is_what_places_for_all_cost():
    sizes = [11, 9, 8, 8, 7, 7, 6, 6, 6, 6, 6]
    instance = cluster([[20] * 4], [(size, "rack") for size in sizes])
    assert of("kueue", instance).solution is None
    found = of("gang-exchange", instance)
    told = [point.incumbent for point in found.trace if point.incumbent is not None]
    assert found.objective == len(sizes) == told[-1]
    assert min(told) == found.objective


def test_every_value_of_the_public_data_is_found():
    values = json.loads(shared_data("placement/values.json").read_text())
    for name, value in values.items():
        instance = convert(shared_data(f"placement/{name}.json"), "racks")
        found = ddlopt.solve(instance, gap=0)
        assert (found.objective, found.status) == (value["value"], Status.OPTIMAL), name
        runs = [[(int(leaf), count) for leaf, count in own.items()] for own in value["placement"].values()]
        given = GangPlaces(instance=name, places=runs)
        assert evaluate(instance, given, exact=True).objective == value["value"], name
