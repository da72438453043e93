"""Places of gangs: the check and every way to break an answer, bounds against all places, bad instances."""

import itertools

import pytest
from placement_brute_force import brute_force, drawn, fewest_crossings
from refusals import one_line
from volume import for_each, seeds

from ddlopt.models.cluster import GangPlaces, PlacementInstance, bound, evaluate
from ddlopt.models.cluster.placement import bounds
from ddlopt.models.cluster.placement.bounds import exact_placement_bound, fewest
from ddlopt.models.errors import InfeasibleError, InstanceError

DATA = {
    "name": "two-blocks",
    "levels": ["block", "rack"],
    "leaves": [
        {"name": "r0", "inside": ["b0"], "hosts": 4},
        {"name": "r1", "inside": ["b0"], "hosts": 2},
        {"name": "r2", "inside": ["b1"], "hosts": 3},
    ],
    "gangs": [
        {"name": "wide", "hosts": 5, "within": "block", "weight": 2},
        {"name": "narrow", "hosts": 3, "within": "rack"},
    ],
}
GOOD = (((0, 4), (1, 1)), ((2, 3),))


def made(**changes):
    return PlacementInstance.from_data(DATA | changes)


def places(*runs):
    return GangPlaces(instance="two-blocks", places=runs)


def kinds(instance, answer, exact=False):
    return {each.kind for each in evaluate(instance, answer, exact).violations}


@pytest.mark.parametrize("exact", [False, True])
def test_objectives_are_counted_from_the_ranks(exact):
    def of(objective, runs=GOOD, **more):
        found = evaluate(made(objective=objective, **more), places(*runs), exact)
        assert found.feasible
        return found.objective

    assert of("pairs") == 2 * 2 + 1
    assert of("crossings") == 2 * 2
    assert of("max_gangs") == 3
    assert of("fits") == 1
    assert of("pairs", prices=[10, 1]) == 2 * (10 + 2) + (10 + 1)
    assert of("crossings", prices=[10, 1]) == 2 * 2
    # The same hosts, ranks not in order: r0 r1 r0 crosses as often as r0 r1; r0 r1 r0 r1 twice as often.
    assert of("crossings", (((0, 1), (1, 1), (0, 3)), ((2, 3),))) == 2 * 2
    assert of("crossings", (((0, 1), (1, 1), (0, 2), (1, 1)), ((2, 3),))) == 2 * 4
    assert of("pairs", (((0, 1), (1, 1), (0, 2), (1, 1)), ((2, 3),))) == 5
    assert of("max_gangs", (GOOD[0], ())) == 2
    assert of("fits", (GOOD[0], ())) == 0


def test_details_say_what_is_left():
    found = evaluate(made(), places(*GOOD)).details
    assert found == {"pairs": 3, "crossings": 2, "placed": 2, "free_hosts": 1, "free_leaves": 0, "largest_free": 1}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("runs", "kind"),
    [
        ((GOOD[0],), "every gang has an entry"),
        ((*GOOD, ()), "every gang has an entry"),
        ((GOOD[0], ((3, 3),)), "leaves are known"),
        ((((0, 4), (1, 1), (1, 0)), GOOD[1]), "runs have ranks"),
        ((((0, 4),), GOOD[1]), "a gang has all its hosts"),
        ((((0, 4), (1, 2)), GOOD[1]), "a gang has all its hosts"),
        ((((0, 5),), GOOD[1]), "hosts are free"),
        ((GOOD[0], ((1, 1), (2, 2))), "a gang is within its level"),
        ((((0, 4), (2, 1)), ((1, 2), (2, 1))), "a gang is within its level"),
        ((GOOD[0], ()), "every gang is placed"),
    ],
)
def test_every_way_to_break_an_answer_is_found(runs, kind, exact):
    assert kind in kinds(made(), places(*runs), exact)
    assert evaluate(made(), places(*GOOD), exact).feasible


def test_a_broken_form_has_no_objective():
    assert evaluate(made(), places(GOOD[0])).objective is None
    assert evaluate(made(), places(GOOD[0], ((9, 3),))).objective is None


@pytest.mark.parametrize("domains", [("a",) * 4, ("a", "a", "b", "b"), ("a", "b", "c", "c", "c"), ("a", "b")])
def test_ranks_by_domain_have_the_fewest_crossings(domains):
    """Of all orders: one for each domain, none where there is one."""
    count = len(set(domains))
    assert fewest_crossings(domains) == (count if count > 1 else 0)


def test_one_order_is_best_at_every_level():
    ring = [("b0", "r0"), ("b0", "r0"), ("b0", "r1"), ("b1", "r2"), ("b1", "r3")]
    for level in (0, 1):
        names = [path[level] for path in ring]
        crossed = sum(a != b for a, b in itertools.pairwise([*names, names[0]]))
        assert crossed == fewest_crossings(names)


def instances(seed):
    try:
        yield drawn(seed)
    except InstanceError:  # a gang that fits nowhere, or prices that are all 0
        return


@for_each("seed", seeds(60, 1500))
def test_bounds_hold_for_all_places(seed):
    for instance in instances(seed):
        best = brute_force(instance)
        if best is None:
            continue
        found = exact_placement_bound(instance)
        assert found.denominator == 1
        assert found <= best if instance.sense == "minimize" else found >= best
        assert bound(instance) == found


def test_bounds_are_met_where_hosts_are_all_used():
    """By domains: of gangs by themselves each would be in one rack."""
    leaves = [{"name": f"r{place}", "hosts": hosts} for place, hosts in enumerate((1, 1, 2, 4))]
    base = {"name": "tight", "levels": ["rack"], "leaves": leaves, "gangs": [{"name": "a", "hosts": 4}]}
    both = PlacementInstance.from_data(base | {"gangs": [*base["gangs"], {"name": "b", "hosts": 4}]})
    assert fewest(both, both.gangs[0], 0) == 1
    assert exact_placement_bound(both) == 4 == brute_force(both)
    crossing = both.changed(objective="crossings")
    assert exact_placement_bound(crossing) == 3 == brute_force(crossing)


def test_the_largest_domains_hold_a_gang():
    """Racks of 4, 3 and 2 hosts, blocks of 6 and 3."""
    wide = [made(gangs=[{"name": "g", "hosts": hosts}]) for hosts in range(1, 10)]
    assert [fewest(each, each.gangs[0], 1) for each in wide] == [1, 1, 1, 1, 2, 2, 2, 3, 3]
    assert [fewest(each, each.gangs[0], 0) for each in wide] == [1, 1, 1, 1, 1, 1, 2, 2, 2]


def test_where_domains_are_too_much_work_gangs_count_alone(monkeypatch):
    leaves = [{"name": f"r{place}", "hosts": hosts} for place, hosts in enumerate((1, 1, 2, 4))]
    gangs = [{"name": name, "hosts": 4} for name in "ab"]
    both = PlacementInstance.from_data({"name": "tight", "levels": ["rack"], "leaves": leaves, "gangs": gangs})
    monkeypatch.setattr(bounds, "_MOST_WORK", 8 * 8 - 1)
    assert exact_placement_bound(both) == 2
    monkeypatch.setattr(bounds, "_MOST_WORK", 8 * 8)
    assert exact_placement_bound(both) == 4


def test_gangs_that_need_more_hosts_than_there_are_have_no_places():
    leaves, gangs = DATA["leaves"], [{"name": f"g{place}", "hosts": 5} for place in range(2)]
    with one_line(InfeasibleError, "gangs need 10 hosts, and 9 are free"):
        exact_placement_bound(made(leaves=leaves, gangs=gangs))
    assert exact_placement_bound(made(gangs=gangs, objective="max_gangs")) == 1
    assert exact_placement_bound(made(gangs=gangs, objective="fits")) == 0
    assert exact_placement_bound(made(gangs=[{"name": "g", "hosts": 5, "within": "rack"}], objective="fits")) == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"leaves": [{"name": "r0", "hosts": 1}]}, "inside has 0 names, and there are 1 levels around it: block"),
        ({"leaves": [DATA["leaves"][0], DATA["leaves"][0]]}, "leaves[1] is named 'r0', like leaves[0]"),
        ({"gangs": [*DATA["gangs"], DATA["gangs"][0]]}, "gangs[2] is named 'wide', like gangs[0]"),
        ({"levels": ["rack", "rack"]}, "levels[1] is named 'rack', like levels[0]"),
        ({"levels": ["any", "rack"]}, "a level is named 'any'"),
        ({"gangs": [{"name": "g", "hosts": 1, "within": "pod"}]}, "within is 'pod'; levels are: any, block, rack"),
        (
            {"gangs": [{"name": "g", "hosts": 5, "within": "rack"}]},
            "gangs[0] ('g') fits nowhere: it needs 5 hosts, and the largest rack, 'r0', has 4 free",
        ),
        ({"gangs": [{"name": "g", "hosts": 10}]}, "it needs 10 hosts, and all leaves together have 9 free"),
        ({"gangs": [{"name": "g", "hosts": 0}]}, "hosts"),
        ({"gangs": []}, "gangs"),
        ({"prices": [1]}, "prices has 1 entries, and there are 2 levels"),
        ({"prices": [0, 0]}, "prices are all 0"),
        ({"objective": "cost"}, "objective"),
        ({"leaves": [{"name": "r0", "inside": ["b0"], "hosts": 9, "host_names": ["a"]}]}, "1 host_names for 9 hosts"),
    ],
)  # fmt: skip
def test_bad_instances_are_refused_in_a_line(changes, words):
    with one_line(InstanceError, words):
        made(**changes)


def test_levels_have_to_nest():
    leaves = [
        {"name": "n0", "inside": ["b0", "r0"], "hosts": 1},
        {"name": "n1", "inside": ["b1", "r0"], "hosts": 1},
    ]
    with one_line(
        InstanceError, "level 'rack' does not nest: 'r0' is in block 'b0' (leaves[0]) and in 'b1' (leaves[1])"
    ):
        made(levels=["block", "rack", "host"], leaves=leaves, gangs=[{"name": "g", "hosts": 1}])
    twice = [{"name": f"r{n}", "inside": ["b0"], "hosts": 1, "host_names": ["a"]} for n in range(2)]
    with one_line(InstanceError, "host 'a' is in rack 'r0' and in 'r1'"):
        made(leaves=twice, gangs=[{"name": "g", "hosts": 1}])


def test_what_may_be_left_out_may_fit_nowhere():
    gangs = [{"name": "g", "hosts": 5, "within": "rack"}, {"name": "h", "hosts": 1}]
    assert bound(made(gangs=gangs, objective="max_gangs")) == 1
    assert bound(made(gangs=gangs, objective="fits")) == 0
