"""Data parallelism: which strategies it takes, and what memory makes of it."""

import itertools

import numpy as np
import pytest
from volume import for_each

import ddlopt
from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import CodesignInstance, job_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import NoSolutionError, OptionError
from ddlopt.solvers.backends.contracts import Outcome
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.codesign.data_parallel import DataParallel, data_parallel, thrifty, usual
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology.topoopt.topology_finder import TopologyFinder


def instance_of(layers, memory_bytes=None):
    """Layers by name, each with (strategy, reads, writes, memory[, bytes reduced]); layout 0 is by samples, 1 not."""
    n = 4
    return CodesignInstance.from_data(
        {
            "name": "hand-made",
            "servers": n,
            "degree": 2,
            "link_bandwidth_bytes_per_s": 1.0,
            "device": {
                "flops_per_s": 1.0,
                "convolution_flops_per_s": 1.0,
                "memory_bytes_per_s": 1.0,
                "memory_bytes": memory_bytes,
            },
            "layouts": [
                {"batch_parts": n, "servers": [0, 1, 2, 3]},
                {"batch_parts": 1, "channel_parts": n, "servers": [0, 1, 2, 3]},
                {"batch_parts": 1, "servers": [2]},
            ],
            "group_sets": [[[0, 1, 2, 3]]],
            "layers": [
                {
                    "name": name,
                    "strategies": [
                        {
                            "name": strategy,
                            "reads": reads,
                            "writes": writes,
                            "memory_bytes": memory,
                            "reductions": [{"groups": 0, "bytes": reduced[0] if reduced else 8}],
                        }
                        for strategy, reads, writes, memory, *reduced in strategies
                    ],
                }
                for name, strategies in layers.items()
            ],
        }
    )


def test_which_strategy_is_usual():
    instance = instance_of(
        {
            "by its name": [("column-4", 1, 1, 1), ("copied", 0, 0, 1), ("data", 0, 0, 1)],
            "a table": [("replicated", None, 0, 1), ("rows", None, 0, 1), ("owner", None, 2, 1)],
            "by its layouts": [("a", 1, 0, 1), ("b", 1, 1, 1), ("c", 0, 0, 1), ("d", None, 0, 1)],
            "by its place": [("a", 1, 0, 1), ("b", 1, 1, 1)],
        }
    )
    assert usual(instance) == (2, 2, 2, 0)
    assert data_parallel(instance) == (2, 2, 2, 0)


def spread_time(instance, choices):
    """Compute time, and all bytes over all links: what memory is traded against."""
    job = job_of(instance, choices)
    if job is None:
        return tables_of(instance).compute_of(choices)
    sent = sum(len(group.members) * group.hop_bytes for group in job.allreduce_groups) + job.traffic_bytes.sum()
    links = instance.servers * instance.degree
    return job.compute_s + sent / links / instance.link_bandwidth_bytes_per_s


def test_memory_is_traded_against_time():
    """The second layer reduces least in the leaner strategies, so it is the first to take one."""
    lean = {"a": 40, "b": 10, "c": 20}
    layers = {name: [("data", 0, 0, 6), ("lean", 1, 1, 1, bytes_)] for name, bytes_ in lean.items()}
    assert data_parallel(instance_of(layers, 18)) == (0, 0, 0)
    assert data_parallel(instance_of(layers, 13)) == (0, 1, 0)
    assert data_parallel(instance_of(layers, 8)) == (0, 1, 1)
    assert data_parallel(instance_of(layers, 3)) == (1, 1, 1)
    with pytest.raises(NoSolutionError, match="no choice of strategies fits"):
        data_parallel(instance_of(layers, 2))


@for_each("seed", range(6))
def test_where_the_program_has_no_time_a_greedy_choice_fits(seed):
    instance = random_job(np.random.default_rng(seed), memory_slack=1.0, servers=(4, 6)[seed % 2])
    found = thrifty(instance)
    if found is not None:
        assert tables_of(instance).fits(found)
        assert spread_time(instance, data_parallel(instance)) <= spread_time(instance, found) * (1 + 1e-4)
    lean = {"a": 40, "b": 10, "c": 20}
    layers = {name: [("data", 0, 0, 6), ("lean", 1, 1, 1, bytes_)] for name, bytes_ in lean.items()}
    assert [thrifty(instance_of(layers, memory)) for memory in (18, 13, 8, 3, 2)] == [
        *((0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1), None)
    ]


@pytest.mark.parametrize("outcome", [Outcome(Status.NO_SOLUTION), Outcome(Status.INFEASIBLE)])
def test_the_program_has_a_fifth_of_the_time(monkeypatch, outcome):
    asked = []
    monkeypatch.setattr(Highs, "solve", lambda self, model, limits: asked.append(limits.time_s) or outcome)
    layers = {name: [("data", 0, 0, 6), ("lean", 1, 1, 1, 10)] for name in "abc"}
    if outcome.status is Status.INFEASIBLE:
        with pytest.raises(NoSolutionError, match="fits into the memory"):
            data_parallel(instance_of(layers, 13), Clock(Limits(10.0), None))
    else:
        assert data_parallel(instance_of(layers, 13), Clock(Limits(10.0), None)) == (0, 0, 1)
    with pytest.raises(NoSolutionError):
        data_parallel(instance_of(layers, 2))
    assert 1.0 < asked[0] <= 2.0
    assert asked[1] is None


@for_each("seed", range(4))
def test_memory_against_all_choices(seed):
    instance = random_job(np.random.default_rng(seed), memory_slack=1.0, servers=(4, 6)[seed % 2])
    wanted = list(usual(instance))
    found = data_parallel(instance)
    fitting = [c for c in itertools.product(*map(range, tables_of(instance).sizes)) if tables_of(instance).fits(c)]
    assert found in fitting
    if tuple(wanted) not in fitting:
        best = min(spread_time(instance, choices) for choices in fitting)
        assert spread_time(instance, found) == pytest.approx(best, rel=1e-4)
    result = DataParallel().solve(instance, Limits())
    changed = sum(a != b for a, b in zip(found, wanted, strict=True))
    assert result.details["layers_changed_for_memory"] == changed


def test_its_links_are_those_of_topology_finder():
    instance = random_job(np.random.default_rng(5), servers=6)
    result = DataParallel().solve(instance, Limits(), seed=3)
    job = job_of(instance, data_parallel(instance))
    design = TopologyFinder().solve(job, Limits(), seed=3).solution
    assert result.checked
    assert (result.solution.design.links, result.solution.design.rings) == (design.links, design.rings)
    better = DataParallel(topology="exact").solve(instance, Limits(time_s=2))
    assert better.objective <= result.objective


def test_no_fit_is_proven():
    layers = {"a": [("data", 0, 0, 6)], "b": [("data", 0, 0, 6)]}
    result = DataParallel().solve(instance_of(layers, 10), Limits())
    assert result.status is Status.INFEASIBLE  # by the bound
    assert result.solution is None


def test_options():
    with pytest.raises(OptionError, match="topology is 'best'"):
        DataParallel(topology="best")


def test_tables_that_any_server_may_hold_are_dealt_out():
    instance = ddlopt.load("codesign/dlrm-n12-d4")
    tables = [layer for layer in instance.layers if layer.name.startswith("table")]
    names = [layer.strategies[a].name for layer, a in zip(instance.layers, usual(instance), strict=True)]
    assert names[: len(tables)] == [f"whole-{k % 12}" for k in range(len(tables))]
    assert set(names[len(tables) :]) == {"data"}
