"""Rates of jobs that need not merge: the integer program against all answers, its relaxation, levels and refusals."""

import itertools
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from aggregation_graph_cases import optimum, random_instance, star
from volume import spread

from ddlopt.frontier.aggregation.graph.formulations.rate_messages import RateMessages, job_levels
from ddlopt.instances.generators.aggregation.graph import leaf_spine
from ddlopt.models.aggregation import GraphInstance, evaluate
from ddlopt.models.aggregation.graph.bounds import graph_bound, most_rates
from ddlopt.models.aggregation.graph.network import job_network
from ddlopt.solvers.aggregation.graph.methods import best
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

SEEDS = (0, 1, 3, 16, 34, 49, 53, 57, 70, 76)
"""Some with shared links, rates of switches, workers that aggregate, and switches that do not forward."""


def solved(instance: GraphInstance, flows: bool = True, start: Any = None) -> Any:
    return Exact("x", "aggregation", RateMessages(flows=flows)).solve(instance, Limits(time_s=60), start=start)


def narrow() -> GraphInstance:
    """Four jobs on links between switches that are a quarter as wide as those of hosts."""
    sizes = {"leaves": 3, "spines": 2, "hosts": 2, "spine_bandwidth_bytes_per_s": 3.125e9, "jobs": 4, "workers": 3}
    return leaf_spine(np.random.default_rng(4), **sizes, slots=1, goal="rates")


@pytest.mark.parametrize(("connections", "aggregators"), spread(itertools.product(["own", 1, 2], ["own", None, 1]), 4))
def test_rates_are_the_best_of_all_answers(aggregators: Any, connections: Any) -> None:
    given = {"aggregators": aggregators, "connections": connections}
    limits = {name: value for name, value in given.items() if value != "own"}
    tried = 0
    for seed in SEEDS:
        instance = random_instance(seed, goal="rates", **limits)
        best_rate = optimum(instance)
        for flows in (True, False):
            found = solved(instance, flows)
            if best_rate is None:
                assert found.status is Status.INFEASIBLE
            else:
                assert found.status is Status.OPTIMAL
                assert found.objective == pytest.approx(best_rate, rel=1e-6)
                assert found.bound >= best_rate * (1 - 1e-9)
        tried += best_rate is not None
    assert tried >= 3


@pytest.mark.slow
def test_messages_times_rates_make_the_relaxation_strong() -> None:
    instance = narrow()
    strong, plain = lp_relaxation(RateMessages(), instance), lp_relaxation(RateMessages(flows=False), instance)
    found = solved(instance)
    assert found.status is Status.OPTIMAL
    assert found.objective * (1 - 1e-6) <= strong.objective <= 0.9 * plain.objective
    for seed in SEEDS[:6]:
        small = random_instance(seed, goal="rates", aggregators=None, connections=None)
        relaxed = [lp_relaxation(RateMessages(flows=flows), small).objective for flows in (True, False)]
        assert solved(small).objective <= relaxed[0] * (1 + 1e-6) <= relaxed[1] * (1 + 2e-6)


def test_the_rate_of_a_switch_is_shared_by_jobs_not_by_messages() -> None:
    nodes = [node.model_dump() | {"slots": 2 if v == 1 else 0} for v, node in enumerate(star().nodes)]
    nodes[1]["aggregation_bytes_per_s"] = 7.0
    jobs = [star().jobs[0].model_dump(), star().jobs[0].model_dump() | {"name": "k"}]
    instance = star(nodes=nodes, jobs=jobs, goal="rates", connections=1)
    # Both jobs must meet in the switch of the server, three messages of each.
    assert solved(instance).objective == pytest.approx(7.0)
    assert graph_bound(instance) == pytest.approx(10.0)


def test_levels_are_capacities_over_numbers_of_messages() -> None:
    instance = star(goal="rates")
    # Three raw messages and one sum at most; none faster than a host's link.
    levels = job_levels(instance, [job_network(instance, instance.jobs[0])])
    assert levels == [(10.0, 5.0, 10.0 / 3, 2.5)]
    nodes = [node.model_dump() | {"slots": 0} for node in star().nodes]
    idle = star(nodes=nodes, goal="rates")
    # Without a switch that aggregates, three messages arrive at the server.
    assert job_levels(idle, [job_network(idle, idle.jobs[0])])[0][0] == pytest.approx(10.0 / 3)
    assert solved(idle).objective == pytest.approx(10.0 / 3)


def test_jobs_share_the_only_way_out_of_a_host() -> None:
    jobs = [star().jobs[0].model_dump() | {"workers": each} for each in ((3, 4), (3, 5), (4, 5))]
    instance = star(jobs=jobs, goal="rates")
    # All three servers are one host: a third each. With two at other switches, a half of the host that both use.
    assert most_rates(instance) == pytest.approx([10.0 / 3] * 3)
    jobs[2]["server"] = 3
    assert most_rates(star(jobs=jobs, goal="rates")) == pytest.approx([5.0, 5.0, 5.0])
    assert graph_bound(star(jobs=jobs[1:], goal="rates")) == pytest.approx(10.0)


def test_a_solution_is_a_start() -> None:
    instance = narrow()
    found = solved(instance)
    again = solved(instance, start=found.solution)
    assert again.objective == pytest.approx(found.objective)
    block = build_model("aggregation", RateMessages(), instance).component("aggregation")
    RateMessages().start(block, instance, found.solution)
    assert sum(pyo.value(each) for each in block.aggregates.values()) == found.details["aggregators"]
    sent = sum(len(job_network(instance, job).sent) for job in instance.jobs)
    messages = sum(pyo.value(each) for part in (block.raw, block.sums) for each in part.values())
    assert messages + sent == found.details["messages"]
    assert all(
        pyo.value(uses)
        == (pyo.value(block.sums[key]) + sum(pyo.value(block.raw[key[0], g, *key[1:]]) for g in groups) > 0)
        for key, uses in block.uses.items()
        for groups in [job_network(instance, instance.jobs[key[0]]).groups]
    )
    assert evaluate(instance, RateMessages().read(block, instance)).objective == pytest.approx(found.objective)


def test_other_goals_and_merging_are_refused() -> None:
    assert RateMessages().refuses(star(goal="rates")) is None
    assert "rate-levels" in (RateMessages().refuses(star(goal="rates", merging=True)) or "")
    assert "congestion" in (RateMessages().refuses(star()) or "")


def test_the_method_for_a_problem_proves_rates_without_merging() -> None:
    found = best(narrow(), "highs").solve(narrow(), Limits(time_s=60))
    assert found.status is Status.OPTIMAL
    assert "rate-messages" in found.message
