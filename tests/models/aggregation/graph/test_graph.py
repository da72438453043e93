"""Aggregation networks and their check: hand-made cases, violations, bad input, bounds."""

from fractions import Fraction
from typing import Any

import pytest
from aggregation_graph_cases import answers, optimum, plain_loads, random_instance, star
from volume import for_each

from ddlopt.models.aggregation import AggregationTrees, GraphInstance, HotSet, evaluate
from ddlopt.models.aggregation.graph.bounds import graph_bound
from ddlopt.models.aggregation.graph.evaluate import evaluate_graph
from ddlopt.models.aggregation.graph.network import routes_of
from ddlopt.models.errors import InfeasibleError, InstanceError, SolutionError, SolverError

ALONE = ((3, 0, 1, 6), (4, 0, 1, 6), (5, 1, 6))
JOINED = ((0, 1), (1, 6), (3, 0), (4, 0), (5, 1))


def checked(instance: GraphInstance, *trees: Any, exact: bool = False) -> Any:
    return evaluate_graph(instance, AggregationTrees(instance=instance.name, trees=trees), exact)


def kinds(found: Any) -> list[str]:
    return [violation.kind for violation in found.violations]


def test_messages_that_nobody_aggregates_add_up() -> None:
    found = checked(star(), ALONE)
    assert found.feasible
    assert found.objective == 3 * 2.0  # three messages of 20 bytes into the server, at 10 bytes per second
    assert found.details["utilization_s"] == 2.0 * 8
    assert found.details["connections"] == 3
    assert found.details["aggregators"] == 0


def test_a_switch_sends_one_message_for_all_that_end_in_it() -> None:
    found = checked(star(), JOINED)
    assert found.feasible
    assert found.objective == 2.0
    assert found.details == {
        "utilization_s": 10.0,
        "congestion_s": 2.0,
        "equal_share_bytes_per_s": 10.0,
        "max_min_bytes_per_s": 10.0,
        "aggregators": 2,
        "connections": 1,
        "messages": 5,
    }


def test_the_aggregators_of_a_switch_have_a_rate() -> None:
    nodes = [node.model_dump() for node in star().nodes]
    nodes[1]["aggregation_bytes_per_s"] = 4.0
    # Two messages of 20 bytes end in switch 1.
    assert checked(star(nodes=nodes), JOINED).objective == 10.0
    assert checked(star(nodes=nodes, goal="rates"), JOINED).objective == 4.0


def test_jobs_share_equally_or_max_min() -> None:
    jobs = [
        {"name": "one", "workers": (3,), "server": 6},
        {"name": "two", "workers": (4,), "server": 6},
        {"name": "three", "workers": (5, 4), "server": 3},
    ]
    instance = star(jobs=jobs, goal="rates")
    trees = [((3, 0, 1, 6),), ((4, 0, 1, 6),), ((4, 0, 3), (5, 1, 0, 3))]
    found = checked(instance, *trees, exact=True)
    # Link 4-0 and links into 6 and 3 carry two messages each.
    assert found.objective == 15
    links = [link.model_dump() for link in star().links]
    links[3]["bandwidth_bytes_per_s"] = 6  # 0-1: jobs one and two have 3 each, three gets 5 of its worker's own link
    found = checked(star(jobs=jobs, goal="rates", links=links), *trees, exact=True)
    assert found.objective == 3 + 3 + 5
    assert found.details["max_min_bytes_per_s"] == 3 + 3 + 5
    links[0]["bandwidth_bytes_per_s"] = 4  # 3-0: one has 4 at most, three has 2
    found = checked(star(jobs=jobs, goal="rates", links=links), *trees, exact=True)
    assert found.objective == 3 + 3 + 2
    links[0]["bandwidth_bytes_per_s"] = 10
    links[3]["bandwidth_bytes_per_s"] = 10
    links[1]["bandwidth_bytes_per_s"] = 4  # 4-0: two and three have 2; max-min gives one what two leaves of 0-1
    found = checked(star(jobs=jobs, goal="rates", links=links), *trees, exact=True)
    assert found.objective == 5 + 2 + 2
    assert found.details["max_min_bytes_per_s"] == 8 + 2 + 2


@for_each(
    ("fields", "tree", "kind"),
    [
        ({}, ((3, 1, 6), *ALONE[1:]), "route follows links"),
        ({}, ((3, 99), *ALONE[1:]), "node exists"),
        ({}, ((3,), *ALONE[1:]), "route leads somewhere"),
        ({}, ((3, 0, 1, 2, 0, 1, 6), *ALONE[1:]), "route visits a node once"),
        ({}, (*ALONE, (2, 1, 6)), "senders start one route"),
        ({}, ALONE[:2], "senders start one route"),
        ({}, (*ALONE, ALONE[0]), "senders start one route"),
        ({}, JOINED[1:], "senders start one route"),
        ({"aggregators": 1}, JOINED, "aggregators are within the budget"),
        ({"connections": 2}, ALONE, "few connections arrive at the server"),
        ({"merging": True}, ALONE, "messages that meet are aggregated"),
    ],
)
def test_violations(fields: dict[str, Any], tree: Any, kind: str) -> None:
    assert kind in kinds(checked(star(**fields), tree))


def test_slots_nodes_that_do_not_forward_and_the_server_in_between() -> None:
    jobs = [job.model_dump() | {"slots": 2} for job in star().jobs]
    assert kinds(checked(star(jobs=jobs), JOINED)) == ["slots suffice", "slots suffice"]
    nodes = [node.model_dump() for node in star().nodes]
    nodes[2]["forwards"] = False
    way = ((3, 0, 2, 1, 6), *ALONE[1:])
    assert kinds(checked(star(nodes=nodes), way)) == ["nodes on the way forward"]
    for node, route in ((0, (2, 0, 1, 6)), (2, (3, 0, 2, 1))):  # the first on the way, and the last
        nodes = [each.model_dump() | {"forwards": number != node} for number, each in enumerate(star().nodes)]
        jobs = [{"name": "j", "workers": (route[0],), "server": route[-1]}]
        assert kinds(checked(star(nodes=nodes, jobs=jobs), (route,))) == ["nodes on the way forward"]
    jobs = [{"name": "j", "workers": (3, 4), "server": 1}]
    assert kinds(checked(star(jobs=jobs), ((3, 0, 1), (4, 0, 1)))) == []
    passing = ((2, 1), (3, 0, 2), (4, 0, 1, 2))
    assert kinds(checked(star(jobs=jobs), passing)) == ["route ends where it meets the server"]


def test_switches_must_not_send_to_each_other_in_a_circle() -> None:
    tree = ((0, 1), (1, 2), (2, 0), (3, 0), (4, 0), (5, 1, 6))
    found = [each for each in checked(star(), tree).violations if each.kind == "messages reach the server"]
    assert [(each.lhs, each.rhs) for each in found] == [(3, 6)] * 3  # routes in the circle, and all


def test_a_worker_that_aggregates_sends_one_message_and_its_own_gradient_does_not_arrive() -> None:
    nodes = [node.model_dump() for node in star().nodes]
    nodes[0]["aggregation_bytes_per_s"] = 5.0
    instance = star(nodes=nodes, jobs=[{"name": "j", "workers": (0, 3), "server": 1, "gradient_bytes": 20}])
    found = checked(instance, ((0, 1), (3, 0)))
    assert found.feasible
    assert found.objective == 4.0


def test_other_answers_are_refused() -> None:
    with pytest.raises(SolutionError, match="cannot answer"):
        evaluate(star(), HotSet(instance="star", placed=()))
    assert kinds(checked(star())) == ["every job has a tree"]


@for_each(
    ("fields", "message"),
    [
        ({"links": [{"ends": (0, 9), "bandwidth_bytes_per_s": 1}]}, "names node 9"),
        ({"links": [{"ends": (2, 2), "bandwidth_bytes_per_s": 1}]}, "to itself"),
        ({"links": [{"ends": e, "bandwidth_bytes_per_s": 1} for e in [(0, 1), (1, 0)]]}, "again"),
        ({"jobs": [{"name": "j", "workers": (3, 6), "server": 6}]}, "among its workers"),
        ({"jobs": [{"name": "j", "workers": (3, 3), "server": 6}]}, "twice"),
        ({"links": [{"ends": (3, 0), "bandwidth_bytes_per_s": 1}]}, "from which no route leads"),
    ],
)
def test_bad_instances(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InstanceError, match=message):
        star(**fields)


def test_exact_numbers_are_fractions_and_agree() -> None:
    for seed in (1, 6, 8):
        instance = random_instance(seed)
        answer = next(each for each in answers(instance) if evaluate(instance, each).feasible)
        exact = evaluate_graph(instance, answer, exact=True)
        rough = evaluate_graph(instance, answer)
        assert isinstance(exact.objective, Fraction)
        assert {name: float(value) for name, value in exact.details.items()} == pytest.approx(dict(rough.details))
        loads = plain_loads(instance, answer)
        times = [load / instance.links[instance.arc_of[arc] // 2].bandwidth_bytes_per_s for arc, load in loads.items()]
        assert float(exact.details["utilization_s"]) == pytest.approx(sum(times))


SMALL = (0, 1, 2, 3, 4, 6, 8, 9, 11, 24, 36)


@pytest.mark.parametrize("goal", ["utilization", "congestion", "rates"])
def test_no_answer_is_better_than_the_bound(goal: str) -> None:
    met = 0
    for seed in SMALL:
        instance = random_instance(seed, goal=goal)
        best = optimum(instance)
        if best is None:
            continue
        bound = graph_bound(instance)
        assert bound >= best * (1 - 1e-9) if goal == "rates" else bound <= best * (1 + 1e-9)
        met += bound == pytest.approx(best)
    assert met >= 2


def test_bounds_of_the_star() -> None:
    assert graph_bound(star()) == pytest.approx(2.0)
    assert graph_bound(star(goal="utilization")) == pytest.approx(10.0)
    assert graph_bound(star(goal="utilization", aggregators=0)) == pytest.approx(16.0)
    assert graph_bound(star(aggregators=0)) == pytest.approx(6.0)
    assert graph_bound(star(goal="rates")) == pytest.approx(10.0)
    # Rounding never makes a bound better than it is.
    assert graph_bound(star()) < 2 < 10 < graph_bound(star(goal="rates"))
    assert graph_bound(star(goal="utilization")) < 10
    with pytest.raises(InfeasibleError, match="connections is 2"):
        graph_bound(star(aggregators=0, connections=2))


def test_bounds_by_what_leaves_a_switch_with_its_hosts() -> None:
    # Three jobs of 20, 30 and 40 bytes with a worker at switch 0, which has two links of 10 to others.
    jobs = [{"name": str(j), "workers": (3,), "server": 6, "gradient_bytes": 20.0 + 10 * j} for j in range(3)]
    links = [link.model_dump() for link in star().links]
    links[0]["bandwidth_bytes_per_s"] = links[6]["bandwidth_bytes_per_s"] = 1000
    assert graph_bound(star(jobs=jobs, links=links)) == pytest.approx((20 + 30) / 10)
    # Two workers of each of three jobs at switch 0, of which one job is aggregated there.
    jobs = [{"name": str(j), "workers": (3, 4), "server": 6, "gradient_bytes": 20.0} for j in range(3)]
    links[1]["bandwidth_bytes_per_s"] = 1000
    assert graph_bound(star(jobs=jobs, links=links)) == pytest.approx((1 + 2 + 2) * 20 / 20)
    assert graph_bound(star(jobs=jobs[:2], links=links)) == pytest.approx((1 + 2) * 20 / 20)
    # As much if each takes two slots of two.
    nodes = [each.model_dump() | {"slots": 2 * each.slots} for each in star().nodes]
    large = [each | {"slots": 2} for each in jobs]
    assert graph_bound(star(jobs=large, links=links, nodes=nodes)) == pytest.approx((1 + 2 + 2) * 20 / 20)


def test_routes_are_found_where_messages_would_run_in_a_circle() -> None:
    # 1 and 2 send to each other unless 2's message takes the way of 3's.
    jobs = [{"name": "j", "workers": (1, 2, 3), "server": 0}]
    links = [{"ends": ends, "bandwidth_bytes_per_s": 1} for ends in [(0, 1), (0, 3), (1, 2), (2, 3)]]
    nodes = [{"name": str(v), "slots": 1} for v in range(4)]
    instance = star(nodes=nodes, links=links, jobs=jobs)
    messages = {(3, 0): 1, (1, 2): 1, (2, 1): 1, (2, 3): 1, (3, 2): 1}
    routes = routes_of(instance.jobs[0], messages, {1: 1, 2: 1})
    assert checked(instance, routes).feasible
    with pytest.raises(SolverError, match="do not reach"):
        routes_of(instance.jobs[0], {(3, 0): 1, (1, 2): 1, (2, 1): 1}, {1: 1, 2: 1})
