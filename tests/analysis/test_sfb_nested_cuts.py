"""Selections that are optimal as a parameter grows: graphs in which most is decided cost what the check says."""

import numpy as np
from sfb_cases import drawn
from volume import for_each

from ddlopt.analysis.sfb_nested_cuts import contract
from ddlopt.models.compression import SfbSelection, evaluate
from ddlopt.solvers.compression.sfb.costs import CostGraph, costs_of


@for_each("seed", range(6))
def test_contractions_cost_what_the_check_says(seed):
    instance = drawn(seed, operators=30, broadcast=("per_tensor", "per_edge")[seed % 2])
    rng = np.random.default_rng(seed)
    graph, costs = CostGraph(instance), costs_of(instance)

    def checked(mask):
        answer = SfbSelection(instance=instance.name, duplicated=tuple(np.flatnonzero(mask).tolist()))
        return evaluate(instance, answer).objective

    chosen = (rng.random(instance.size) < 0.4) & instance.eligible
    inside = (rng.random(instance.size) < 0.4) & instance.eligible
    fixed = chosen & ~inside
    small = contract(graph, inside, fixed)
    differences = set()
    for _ in range(10):
        part = (rng.random(len(small.members) + 1) < 0.5) & small.everything
        whole = fixed.copy()
        whole[small.members[part[:-1]]] = True
        differences.add(round(checked(whole) - small.graph.cost(small.costs(costs), part), 9))
    assert len(differences) == 1
