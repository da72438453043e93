"""What aggregation saves: closed forms on one rack, and the same from plans in networks."""

import numpy as np
import pytest

from benchmarks.aggregation.iteration_times import (
    Touched,
    beneath,
    congestion_s,
    rack,
    ring_s,
    servers_s,
    slots_of,
    touched,
)
from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation import GraphInstance, evaluate
from ddlopt.solvers.aggregation.graph.ring import Ring
from ddlopt.solvers.aggregation.graph.strategies import ShortestRoutes
from ddlopt.solvers.aggregation.slots.methods import best
from ddlopt.solvers.contracts import Limits


def _plan(instance: GraphInstance, rule: str):
    return ShortestRoutes(rule).solve(instance, Limits()).solution


@pytest.mark.parametrize("workers", [2, 7])
def test_closed_forms_on_a_rack_are_those_of_plans(workers: int) -> None:
    instance = rack(workers, 3e8, 1e9)
    for rule, expected in (("none", servers_s(workers, 1, 3e8, 1e9)), ("first-switch", 0.3)):
        assert ShortestRoutes(rule).solve(instance, Limits()).objective == pytest.approx(expected)
    assert Ring().solve(instance, Limits()).objective == pytest.approx(ring_s(workers, 3e8, 1e9))
    assert servers_s(workers, 2 * workers, 3e8, 1e9) == pytest.approx(0.3)


def test_rows_are_merged_as_probabilities_are() -> None:
    rows = Touched(np.array([1.0, 0.5, 0.25]), 10.0, 2)
    assert rows.worker_bytes == pytest.approx(17.5)
    assert rows.cold_bytes == pytest.approx(2.5)
    assert rows.merged_bytes(1) == pytest.approx(15)
    assert rows.merged_bytes(3) == pytest.approx(10 + 8.75)
    found = touched(64, 16, 100)
    assert found.row_bytes == 68
    assert (np.diff(found.frequencies) <= 0).all()


def test_sparse_congestion_on_a_rack_is_the_servers_link() -> None:
    instance, rows = rack(4, 1.0, 1e6), Touched(np.array([0.9, 0.5, 0.1]), 8.0, 2)
    hot, cold = _plan(instance, "first-switch"), _plan(instance, "none")
    expected = (rows.merged_bytes(4) + 4 * rows.cold_bytes + 100) / 1e6
    assert congestion_s(instance, hot, cold, rows, 100) == pytest.approx(expected)
    nothing = Touched(rows.frequencies, 8.0, 0)
    assert congestion_s(instance, cold, cold, nothing) == pytest.approx(4 * rows.worker_bytes / 1e6)


@pytest.mark.parametrize("rule", ["none", "first-switch", "top"])
def test_messages_carry_every_worker_once(rule: str) -> None:
    instance = generate("fat-tree", 2, k=4, jobs=2, workers=5)
    assert isinstance(instance, GraphInstance)
    plan = _plan(instance, rule)
    for job, tree in zip(instance.jobs, plan.trees, strict=True):
        arriving = [n for route, n in zip(tree, beneath(tree, job.server), strict=True) if route[-1] == job.server]
        assert sum(arriving) == len(job.workers)


@pytest.mark.parametrize("rule", ["none", "first-switch"])
def test_rates_of_a_plan_give_its_congestion_back_where_slots_are_many(rule: str) -> None:
    instance = generate("fat-tree", 3, k=4, jobs=3, workers=4, placement="clustered")
    assert isinstance(instance, GraphInstance)
    plan = _plan(instance, rule)
    shared = slots_of(instance, plan, [0.0] * 3, slots=10**9, payload_bytes=256, rtt_s=1e-5)
    congestion = evaluate(instance, plan).objective
    assert best(shared, "highs").solve(shared, Limits()).objective == pytest.approx(congestion, rel=1e-9)
    few = slots_of(instance, plan, [0.0] * 3, slots=1, payload_bytes=256, rtt_s=1e-5)
    slower = best(few, "highs").solve(few, Limits()).objective
    assert (slower > 1.5 * congestion) == (rule == "first-switch")
