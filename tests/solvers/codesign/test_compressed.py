"""Methods on strategies times compressors: the optimum by trying everything, and budgets that are kept."""

import numpy as np
import pytest
from codesign_cases import best_of_all
from volume import for_each, slow

import ddlopt
from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import CodesignInstance, evaluate
from ddlopt.models.codesign.tables import tables_of
from ddlopt.solvers.codesign.data_parallel import data_parallel, thrifty
from ddlopt.solvers.contracts import Status

GAP = 1e-4


def compressed(seed, **more):
    rng = np.random.default_rng([5, seed])
    options = {
        "servers": 3 + seed % 2,
        "degree": 1 + seed % 2,
        "layers": 2,
        "strategies": 2,
        "reduction": 0.8,
        "compressors": 2,
        "error_slack": (0.3, 0.0, 0.6)[seed % 3],
        "overlap": ("none", "full")[seed % 5 == 4],
        "memory_slack": (None, 1.0)[seed % 4 == 3],
    }
    return random_job(rng, **options | more)


@for_each("seed", [0, 2, *map(slow, range(12))])
@pytest.mark.parametrize("method", ["auto", "joint-milp:rings=all"])
def test_what_is_proven_is_the_best_that_keeps_the_budget(seed, method):
    instance = compressed(seed)
    best, result = best_of_all(instance), ddlopt.solve(instance, method, time_limit=600.0, gap=GAP)
    if np.isinf(best):
        assert result.status is Status.INFEASIBLE
        return
    assert result.status is Status.OPTIMAL
    told = evaluate(instance, result.solution, exact=True)
    assert told.feasible
    assert told.details["error"] <= instance.error_budget
    assert best * (1 - 1e-6) <= result.objective <= best * (1 + 2 * GAP)
    assert result.bound <= best * (1 + 1e-6)


@pytest.mark.parametrize("method", ["data-parallel", "alternating", "alternating-released", "expander"])
def test_heuristics_keep_the_budget(method):
    for seed in range(3):
        instance = compressed(seed, servers=4, degree=2, layers=4)
        result = ddlopt.solve(instance, method, time_limit=5.0)
        assert result.solution is not None
        assert evaluate(instance, result.solution).feasible


def lossy_first(*errors):
    """A layer for each list of errors, with a strategy for each; the first is the usual one; memory grows with it."""

    def strategy(place, error):
        return {"name": f"s{place}", "writes": 0, "flops": 1.0, "error": error, "memory_bytes": 1.0 + place}

    return CodesignInstance.from_data(
        {
            "name": "lossy-first",
            "servers": 2,
            "degree": 1,
            "link_bandwidth_bytes_per_s": 1.0,
            "device": {"flops_per_s": 1.0, "convolution_flops_per_s": 1.0, "memory_bytes_per_s": 1.0},
            "layouts": [{"batch_parts": 2, "servers": [0, 1]}],
            "layers": [
                {"name": f"layer.{number}", "strategies": [strategy(*each) for each in enumerate(own)]}
                for number, own in enumerate(errors)
            ],
            "error_budget": 2.0,
        }
    )


def test_what_data_parallelism_loses_is_kept_within_the_budget():
    """The usual strategies lose 2 each, or nothing where there is another; the budget has room for one of them."""
    instance = lossy_first([2.0, 0.0], [2.0, 0.0], [2.0, 0.5, 0.0])
    assert tables_of(instance).fits(data_parallel(instance))
    assert thrifty(instance) == (0, 1, 2)
    assert thrifty(instance.changed(error_budget=0.0)) == (1, 1, 2)
    assert thrifty(instance.changed(error_budget=None)) == (0, 0, 0)
