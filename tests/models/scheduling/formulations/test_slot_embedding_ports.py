"""What the model of one slot says no to, how it starts, and what it reads."""

import numpy as np
import pyomo.environ as pyo
import pytest
from scheduling_brute_force import random_instance
from slot_cases import PLACES, changed, close, cluster, job, solve
from volume import for_each, slow

from ddlopt.models.errors import NotApplicableError, SolverError
from ddlopt.models.scheduling import AllOrNothing, Capped, Contention, Network, Run, Schedule
from ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding import SlotEmbedding
from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact, build_model


@for_each(
    ("fields", "options", "reason"),
    [
        ({"slots": 2}, {}, "it models one slot, but there are 2"),
        ({"objective": "makespan"}, {}, "the objective makespan counts ends"),
        ({"objective": "completion"}, {}, "the objective completion counts ends"),
        ({"bandwidth": "shared"}, {}, "it reserves the bandwidth"),
        ({"network": None, "contention": Contention(between_servers_bytes_per_s=1e9, within_server_bytes_per_s=1e9)},
         {}, "under contention"),
        ({"network": Network(links=((0, 1, 1.0), (1, 0, 1.0), (0, 2, 1.0), (2, 0, 1.0)), switches=1, duplex=False)},
         {}, None),
        ({"network": Network(links=((0, 2, 1.0), (2, 1, 1.0), (1, 0, 1.0)), switches=1, duplex=False)},
         {"routing": "cuts"}, "cut indicators need a tree network"),
        ({}, {"done": (1.0, 2.0)}, "done has 2 entries, but there are 1 jobs"),
        ({}, {"gains": ((0.0,), (0.0,))}, "gains has 2 entries, but there are 1 jobs"),
        ({"objective": "makespan"}, {"gains": ((0.0, 1.0, 2.0, 3.0, 4.0),)}, None),
    ],
)  # fmt: skip
def test_refuses(fields, options, reason):
    instance = changed(cluster([job()]), **fields)
    said = SlotEmbedding(**options).refuses(instance)
    assert said is None if reason is None else said.startswith(reason)
    if reason is not None:
        with pytest.raises(NotApplicableError, match="slot-embedding does not cover 'slot': "):
            Exact("slot-embedding", "scheduling", SlotEmbedding(**options)).solve(instance, Limits())


def worst_violation(model):
    """Of all rows and bounds, at the values that the variables have."""
    linear = linear_model(model)
    values = np.array([variable.value for variable in linear.columns])
    rows = linear.matrix @ values
    return max(
        (linear.row_lower - rows).max(),
        (rows - linear.row_upper).max(),
        (linear.lower - values).max(),
        (values - linear.upper).max(),
    )


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("network", ["star", slow("tree"), "mesh", slow(None)])
def test_start_is_a_solution(network, places):
    """Values given by a start satisfy the model, those completed by hand or by the solver."""
    rng = np.random.default_rng(21)
    for number in range(6):
        instance = random_instance(
            rng, jobs=4, slots=1, places=(2, 2, 1), network=network, min_workers=True, pollux=True, energy=number > 2
        )
        best = solve(instance, places="servers")
        model = build_model("scheduling", SlotEmbedding(places=places), instance)
        SlotEmbedding(places=places).start(model.scheduling, instance, best.solution)
        fixed = [v for v in model.component_data_objects(pyo.Var) if v.is_integer() and not v.fixed]
        assert all(variable.value is not None for variable in fixed)
        for variable in fixed:
            variable.fix()
        outcome = Exact("x", "scheduling", SlotEmbedding()).backend.solve(model, Limits())
        assert SlotEmbedding().objective_value(instance, outcome.objective) == close(best.objective)
        assert worst_violation(model) < 1e-7


def test_start_leaves_out_workers_that_gain_nothing():
    instance = cluster([job(most=4, wanted=100.0)])
    start = Schedule(instance="slot", runs=(Run(job=0, start=0, slots=1, workers=((0, 2), (1, 2)), ring=(0, 2, 1, 2)),))
    model = build_model("scheduling", SlotEmbedding(), instance)
    SlotEmbedding().start(model.scheduling, instance, start)
    assert SlotEmbedding().read(model.scheduling, instance).runs[0].workers == ((0, 1),)


def test_read_refuses_part_of_a_worker():
    instance = cluster([job(least=6, most=6)])
    model = build_model("scheduling", SlotEmbedding(), instance)
    for variable in model.component_data_objects(pyo.Var):
        variable.set_value(0.5, skip_validation=True)
    with pytest.raises(SolverError, match=r"variable 'scheduling.width\[0,6\]' is 0.5, which is not whole"):
        SlotEmbedding().read(model.scheduling, instance)


def test_no_job_gains_anything():
    instance = cluster([job(wanted=1e9, utility=AllOrNothing())])
    result = solve(instance)
    assert result.objective == 0.0
    assert result.solution.runs == ()


@pytest.mark.parametrize("value", [1e-6, 1.0, 1e9])
def test_small_and_large_utilities(value):
    """Solvers have absolute tolerances; the model is measured such that they do not matter."""
    jobs = [job(str(k), least=k, most=k, utility=Capped(value=value * (1 + k / 10))) for k in (1, 2, 3, 4, 5)]
    result = solve(cluster(jobs, servers=2))
    reference = solve(
        cluster([one.model_copy(update={"utility": Capped(value=1 + k / 10)}) for k, one in enumerate(jobs, 1)])
    )
    assert result.objective == pytest.approx(value * reference.objective, rel=1e-9)
