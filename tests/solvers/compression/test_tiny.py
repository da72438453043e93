"""Whatever is tiny is proven by the default method, and is what looking at every answer finds."""

import level_cases
import numpy as np
import pytest
import sfb_cases
import timeline_brute_force
from volume import for_each

import ddlopt


def timelines(seed):
    asked = timeline_brute_force.random_timeline_case(np.random.default_rng(seed))
    return asked, timeline_brute_force.brute_force(asked)[0]


def levels(seed):
    asked = timeline_brute_force.random_levels_case(np.random.default_rng(seed))
    return asked, level_cases.brute_force(asked)


def selections(seed):
    fields = {
        "cost_model": "per_link",
        "broadcast": ("per_tensor", "per_edge")[seed % 2],
        "memory_budget_bytes": 9.0 if seed % 3 == 1 else None,
        "compute_budget_s": 4.0 if seed % 3 == 2 else None,
    }
    asked = sfb_cases.drawn(seed, operators=7, **fields)
    return asked, sfb_cases.optima(asked)[0]


@for_each("drawn", [timelines, levels, selections])
@for_each("seed", range(200))
def test_all_that_is_tiny_is_proven(seed, drawn):
    asked, optimum = drawn(seed)
    found = ddlopt.solve(asked, ddlopt.default_method(asked), gap=1e-5, time_limit=600)
    assert found.status == "optimal"
    assert float(found.objective) == pytest.approx(optimum, rel=1e-5, abs=1e-12)
