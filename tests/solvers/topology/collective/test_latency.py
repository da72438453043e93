"""Steps that take time: what a plan takes by hand, bounds that no plan passes, and trees of the fewest steps."""

from contextlib import suppress
from fractions import Fraction

import networkx as nx
import pytest
from networks_drawn import several
from volume import for_each

import ddlopt
from ddlopt.instances.generators import generate
from ddlopt.models.errors import RangeError
from ddlopt.models.topology.collective.bounds import exact_collective_bound, least_hops
from ddlopt.models.topology.collective.evaluate import evaluate_collective
from ddlopt.models.topology.collective.instance import longest_way
from ddlopt.solvers.catalogue import entries
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.topology.collective.baselines import Shallow

COLLECTIVES = ("all-gather", "reduce-scatter", "all-reduce", "broadcast", "all-to-all")
ROOM = tuple(entry for entry in entries("topology") if entry.summary.startswith("collective: "))


def stepped(seed, collective, step_s):
    """A drawn network on which steps take time."""
    return several(seed + 1, collective, most=4)[seed].model_copy(update={"step_s": step_s})


def test_what_is_not_asked_is_not_written():
    instance = generate("topology", "collective", network="ring", accelerators=4)
    assert "step_s" not in instance.to_json()
    slow = generate("topology", "collective", network="ring", accelerators=4, step_us=5.0)
    assert type(slow).from_json(slow.to_json()).step_s == 5.0 * 1e-6
    assert slow.digest != instance.digest


def test_a_ring_by_hand():
    """Each of three quarters goes over three links; an all-reduce goes around nearly twice."""
    for collective, steps, busy in (("all-gather", 3, Fraction(3, 4)), ("all-reduce", 6, Fraction(3, 2))):
        instance = generate(
            "topology", "collective", network="ring", accelerators=4, collective=collective, step_us=2.0
        )
        found = evaluate_collective(instance, ddlopt.solve(instance, "ring-in-order").solution, exact=True)
        assert found.objective == busy + steps * Fraction(instance.step_s)
        assert found.details["latency_s"] == steps * Fraction(instance.step_s)
        assert found.details["hops"] == steps
        assert exact_collective_bound(instance) == found.objective


@pytest.mark.parametrize("collective", COLLECTIVES[:4])
@for_each("seed", range(12))
def test_the_fewest_steps_are_those_of_shortest_paths(seed, collective):
    instance = stepped(seed, collective, 1e6)
    far = dict(nx.all_pairs_shortest_path_length(nx.DiGraph(list(instance.bandwidth))))
    everybody = range(instance.accelerators)
    wanted = {
        "all-gather": lambda: max(far[i][j] for i in everybody for j in everybody),
        "reduce-scatter": lambda: max(far[i][j] for i in everybody for j in everybody),
        "broadcast": lambda: max(far[instance.root][j] for j in everybody),
        "all-reduce": lambda: min(
            max(far[i][v] for i in everybody) + max(far[v][j] for j in everybody) for v in everybody
        ),
    }[collective]()
    plan = Shallow().solve(instance, Limits(5.0)).solution
    found = evaluate_collective(instance, plan, exact=True)
    assert found.details["hops"] == longest_way(plan.trees) == least_hops(instance) == wanted


@for_each("seed", range(12))
def test_no_bound_passes_a_plan_with_steps(seed):
    for place, collective in enumerate(COLLECTIVES):
        plain = stepped(seed // 2, collective, 0.0)
        step_s = float(exact_collective_bound(plain)) * (0.1, 10.0)[(seed + place) % 2]
        instance = stepped(seed // 2, collective, step_s)
        plans, bounds = [], [exact_collective_bound(instance)]
        for entry in ROOM:
            method = entry.make("highs")
            if method.refuses(instance) is None:
                with suppress(RangeError):
                    result = method.solve(instance, Limits(time_s=20.0))
                    if result.solution is not None:
                        plans.append(evaluate_collective(instance, result.solution, exact=True).objective)
                        assert longest_way(result.solution.trees) == result.details["hops"]
                    bounds += [] if result.bound is None else [Fraction(result.bound)]
        assert max(bounds) <= min(plans) * (1 + Fraction(1, 10**7))


def test_methods_take_the_better_of_few_steps_and_full_bandwidth():
    names = ("exact", "forest", "shallow")
    for gigabytes, best in ((1e-9, "shallow"), (10.0, "forest")):
        instance = generate(
            "topology", "collective", network="torus", dimensions="3x3", gigabytes=gigabytes, step_us=9.0
        )
        found = {name: ddlopt.solve(instance, name).objective for name in names}
        assert min(found, key=lambda name: (found[name], name == "exact")) in (best, "exact")
        assert found["exact"] == min(found.values())


def test_flows_do_not_know_how_far_bytes_go():
    instance = generate("topology", "collective", network="ring", accelerators=4, step_us=2.0)
    for name in ("tree-flows", "all-to-all-flows"):
        assert "steps take time" in next(each for each in ROOM if each.name == name).make("highs").refuses(instance)
