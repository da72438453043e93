"""Equal servers of one slot that are counted: against servers with names, and as a start."""

import numpy as np
import pyomo.environ as pyo
import pytest
from scheduling_brute_force import random_instance
from slot_cases import RING, changed, close, cluster, job, solve, star
from volume import for_each, seeds

from ddlopt.frontier.scheduling.formulations.server_patterns.counted_slot import CountedSlot
from ddlopt.models.scheduling import Capped, Network, ServerGroup
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

TREE = Network(switches=3, links=(*((s, 6 + s // 3, 1.5e9) for s in range(6)), (6, 8, 2e9), (7, 8, 2e9)))


@pytest.mark.parametrize(("network", "pinned"), [(star(6, 1.5e9), 1.0), (TREE, 1.0348447)], ids=["star", "tree"])
def test_relaxation_is_pinned(network, pinned):
    """Relaxation over optimum; a change of the model that weakens it shows here."""
    jobs = [
        job(str(k), least=w, most=w, utility=Capped(value=w + k / 10)) for k, w in enumerate((5, 5, 6, 7, 3, 3, 2, 5))
    ]
    instance = cluster(jobs, servers=6, gpus=4, network=network)
    relaxed = lp_relaxation(CountedSlot(), instance).objective
    assert relaxed / solve(instance, CountedSlot()).objective == pytest.approx(pinned, rel=1e-6)


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_counted_servers_are_as_good_as_servers_with_names(seed):
    """Many equal servers in a few classes, one or several kinds of jobs, racks whose uplinks are scarce or not."""
    rng = np.random.default_rng([13, seed])
    base = random_instance(
        rng, jobs=7, slots=1, places=(4, 4), network="star", min_workers=True, pollux=seed % 3 == 0, latency=True
    )
    jobs = base.jobs
    if seed % 2:
        timing = RING.model_copy(update={"bandwidth_bytes_per_s": 1e9})
        jobs = tuple(one.model_copy(update={"timing": timing}) if one.timing.kind == "ring" else one for one in jobs)
    power = {"idle_w": 100.0, "worker_w": 50.0} if seed % 4 == 0 else {}
    servers = (
        ServerGroup(count=3, capacity={"gpu": 2}, **power),
        ServerGroup(count=2, capacity={"gpu": 3}),
        ServerGroup(count=1, capacity={"gpu": 1}),
    )
    rates = rng.choice([1.0, 2.2], 2) * 1e9
    nic = tuple((s, 6 + s % 2, float(rates[s % 2])) for s in range(6))
    network = Network(switches=2, links=(*nic, (6, 7, float(rng.choice([0.9, 3.0])) * 1e9)))
    instance = changed(base, jobs=jobs, servers=servers, network=network, energy_price_per_j=1e-4 if power else 0.0)
    counted = CountedSlot()
    model = build_model("scheduling", counted, instance)
    assert model.scheduling.component("workers_make_the_width") is None
    assert solve(instance, counted).objective == close(solve(instance, places="servers").objective)


def test_too_many_patterns_are_not_counted():
    """Servers with very many places, or with workers of different sizes, have names."""
    many = cluster([job(str(w), most=w) for w in range(1, 31)], servers=3, gpus=60)
    uneven = cluster([job("a", demand={"gpu": 1.0}), job("b", most=2, demand={"gpu": 2.0})], servers=3, gpus=4)
    for instance in (many, uneven):
        model = build_model("scheduling", CountedSlot(), instance)
        assert model.scheduling.component("solo_servers") is None


@for_each("routing", ["cuts", "circulation"])
@for_each("network", ["star", "tree"])
def test_start_is_a_solution(network, routing):
    """Values given by a start satisfy the model, those completed by the solver."""
    rng = np.random.default_rng(21)
    for number in range(4):
        instance = random_instance(
            rng, jobs=4, slots=1, places=(2, 2, 1), network=network, min_workers=True, pollux=True, energy=number > 1
        )
        formulation = CountedSlot(routing=routing)
        best = solve(instance, places="servers")
        model = build_model("scheduling", formulation, instance)
        formulation.start(model.scheduling, instance, best.solution)
        for variable in model.component_data_objects(pyo.Var):
            if variable.is_integer() and not variable.fixed:
                variable.fix()
        outcome = Exact("x", "scheduling", formulation).backend.solve(model, Limits())
        assert formulation.objective_value(instance, outcome.objective) == close(best.objective)
