"""``infeasible`` is evidence like a bound: no method says so of an instance with a solution, and none breaks on others.

Jobs that fit nowhere or end too late, servers that nobody reaches, layers that no memory holds, workers without
connections, targets that no period reaches: answers are compared with enumerations, or with why there is none.
"""

import numpy as np
import pytest
from feasible_cases import graph
from scheduling_brute_force import brute_force, random_instance
from topology_cases import all_to_all
from volume import for_each, seeds, slow, spread

import ddlopt
from ddlopt.instances import generators
from ddlopt.models.aggregation.graph.instance import GraphInstance
from ddlopt.models.contracts import Evidence
from ddlopt.models.errors import NoSolutionError, NotApplicableError
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.solvers.catalogue import method, method_names
from ddlopt.solvers.contracts import Status

RING = {"kind": "ring", "gradient_bytes": 1.0, "bandwidth_bytes_per_s": 5.0, "forward_s_per_sample": 0.5}
NETWORK = {"switches": 1, "links": [[0, 2, 1.0], [1, 2, 1.0]]}
"""Its links carry a fifth of what a ring takes."""
EXACT = ("time-indexed", "slot-patterns", "one-piece", "rigid-gangs", "configurations", "exact")


def job(name, minibatches, width=1, kind="capped"):
    """It is as fast as that many accelerators."""
    utility = {"kind": kind, "value": 1.0}
    return {"name": name, "min_workers": width, "max_workers": width, "timing": RING, "minibatches": minibatches,
            "demand": {"gpu": 1}, "utility": utility}  # fmt: skip


def schedule(name, objective, jobs, **more):
    """Two servers with an accelerator each, three slots of a second."""
    return SchedulingInstance.from_data(
        {"name": name, "slots": 3, "slot_s": 1.0, "servers": [{"count": 2, "capacity": {"gpu": 1}}]}
        | {"objective": objective, "jobs": jobs}
        | more
    )


def answers(instance, names=None):
    """What methods that cover the instance say of it."""
    for name in names or method_names(instance.family):
        try:
            chosen = method(name, instance.family)
            if chosen.refuses(instance) is None:
                yield name, ddlopt.solve(instance, name, time_limit=5)
        except (NotApplicableError, NoSolutionError):
            continue


UNSERVED = {
    "too many partners": lambda: all_to_all(4, host_forwarding=False),
    "too many partners of duplex links": lambda: all_to_all(4, host_forwarding=False, optics="duplex"),
    "one duplex link each": lambda: all_to_all(4, 1, optics="duplex"),
    "a long job": lambda: schedule("long", "makespan", [job("long", 1e6), job("short", 1.0)]),
    "a long job in one piece": lambda: schedule("one", "completion", [job("long", 1e6)], preemptive=False),
    "a long job and its fair share": lambda: schedule("fair", "finish_time_fairness", [job("long", 1e6)]),
    "a ring that no link carries": lambda: schedule("ring", "makespan", [job("wide", 2.0, 2)], network=NETWORK),
    "a ring in one piece": lambda: schedule(
        "ring", "completion", [job("wide", 2.0, 2)], network=NETWORK, preemptive=False
    ),
    "too little memory": lambda: small_memory(),
    "a switch that adds nothing up": lambda: no_aggregator(),
    "a target that no period reaches": lambda: generators.generate("gossip", "period", 0, target=1e-9, step_size=0.1),
}


def no_aggregator():
    """More workers than the server takes connections of, and no switch adds up."""
    data = next(each for seed in range(40) if (each := graph(seed)) is not None)[0].model_dump(mode="json")
    return GraphInstance.from_data(data | {"aggregators": 0, "connections": 1})


def small_memory():
    """No layer fits into a byte."""
    data = generators.generate("codesign", "random", seed=3, servers=3, degree=2, layers=3, strategies=2)
    data = data.model_dump(mode="json")
    data["device"]["memory_bytes"] = 1.0
    return type(generators.generate("codesign", "random", seed=3, servers=3, degree=2)).from_data(data)


@pytest.mark.parametrize("name", spread(UNSERVED, 3))
def test_what_nobody_can_serve_is_said_to_be_so(name):
    instance, told = UNSERVED[name](), 0
    for each, result in answers(instance):
        assert result.status in (Status.INFEASIBLE, Status.NO_SOLUTION, Status.REFERENCE), (each, result.status)
        if result.status is Status.INFEASIBLE:
            assert result.evidence in (Evidence.COMBINATORIAL, Evidence.SOLVER, Evidence.CERTIFICATE), each
            assert result.message, each
            told += 1
    assert told >= 2


@for_each("objective", ["utility", "max_min"])
@for_each("kind", ["capped", "all_or_nothing", "logarithmic"])
@for_each("preemptive", [True, slow(False)])
def test_a_job_that_fits_nowhere_may_stay_idle(objective, kind, preemptive):
    jobs = [job("wide", 2.0, 2, kind), job("small", 1.0)]
    instance = schedule("idle", objective, jobs, network=NETWORK, preemptive=preemptive)
    best = 1.0 if objective == "utility" else 0.0
    proven = 0
    for name, result in answers(instance, EXACT):
        assert result.status is Status.OPTIMAL, (name, result.message)
        assert result.objective == pytest.approx(best, abs=1e-9), name
        proven += 1
    assert proven >= 2


def drawn(seed):
    """Two jobs that have to finish, with as much to do as fits now and then."""
    rng = np.random.default_rng(seed)
    objective = ("makespan", "completion", "finish_time_fairness")[seed % 3]
    shape = {"jobs": 2, "slots": 3, "places": ((3,), (2, 1))[seed % 2], "preemptive": bool(seed % 4 < 2)}
    data = random_instance(rng, objective=objective, **shape).model_dump(mode="json")
    for each in data["jobs"]:
        each["minibatches"] *= float(rng.choice([1.0, 1.5, 2.0, 3.0]))
    return SchedulingInstance.from_data(data)


@for_each("seed", seeds(4, 60))
def test_drawn_jobs_that_have_to_finish(seed):
    """Against the enumeration of all schedules."""
    instance = drawn(seed)
    best = brute_force(instance)
    for name, result in answers(instance, EXACT):
        if best is None:
            assert result.status in (Status.INFEASIBLE, Status.NO_SOLUTION), name
        else:
            assert result.status is Status.OPTIMAL, (name, result.message)
            assert result.objective == pytest.approx(best.objective, rel=2e-4), name


def test_some_drawn_jobs_cannot_finish():
    """So that the test above says something of both."""
    assert 2 <= sum(brute_force(drawn(seed)) is None for seed in range(12)) <= 10
