"""The search among near ideals: plans, never better than the optimum, and the optimum of graphs that are small."""

from itertools import pairwise

import numpy as np
import pytest
from pipeline_cases import best_of_all, drawn
from volume import for_each, seeds

from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment.pipeline.stages import Stages
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.pipeline.chains import best_chain
from ddlopt.solvers.deployment.pipeline.ideal_program import PipelineProgram
from ddlopt.solvers.deployment.pipeline.methods import program
from ddlopt.solvers.deployment.pipeline.near_ideals import Graph, NearIdeals
from ddlopt.solvers.heuristic import Clock


@for_each("seed", seeds(2, 60))
def test_it_finds_the_best_of_all_plans_of_small_graphs(seed):
    instance = drawn(seed + 2000, most=3)
    best, found = best_of_all(instance, exact=False), NearIdeals(patience=1).solve(instance, Limits(gap=0))
    assert (best is None) == (found.solution is None)
    if best is not None:
        assert found.checked
        assert abs(found.objective - best) <= 1e-9 * best


def test_it_is_better_than_cuts_of_one_order_and_the_same_for_the_same_seed():
    instance = generate("pipeline", 1, layers=12, shape="branches", devices=8, alike=False)
    line = PipelineProgram(line=True).solve(instance, Limits(gap=0)).objective
    best = PipelineProgram().solve(instance, Limits(gap=0)).objective
    one, other = (NearIdeals(patience=1).solve(instance, Limits(gap=0), seed=1) for _ in range(2))
    assert best * (1 - 1e-9) <= one.objective < line
    assert one.solution == other.solution


class Ten:
    """Chains of which the best takes 10 s, and each answer is a little better than what was asked for."""

    def within(self, limit_s):
        return [limit_s] if limit_s > 10 else None

    def load_s(self, chain):
        return max(10.0, min(100.0, 0.99 * chain[0]))


@pytest.mark.parametrize("every", [False, True])
def test_what_some_chains_refute_is_reported_as_a_bound_only_if_there_are_no_others(every):
    clock = Clock(Limits(), None)
    found = best_chain(Ten(), 1.0, clock, every)
    assert found.bound_s == pytest.approx(10.0)
    bounds = [point.bound for point in clock.trace]
    assert len(bounds) > 2
    assert (max(bounds) > 9) if every else set(bounds) == {1.0}


@pytest.mark.slow
def test_it_finds_the_optimum_of_forty_layers():
    instance = generate("pipeline", 2, layers=40, shape="random", devices=8, alike=False)
    best = PipelineProgram().solve(instance, Limits(gap=0)).objective
    assert NearIdeals().solve(instance, Limits(gap=0)).objective == pytest.approx(best)


def test_ideals_of_a_beam_are_ideals_and_grow_by_a_layer():
    instance = generate("pipeline", 2, layers=30, shape="random", devices=8, alike=False)
    stages = Stages(instance)
    graph, rng = Graph(stages), np.random.default_rng(0)
    found = sorted(graph.beam(rng, 3, 0.3, 0, graph.whole), key=int.bit_count)
    every = [ideal for ideal in found if all(stages.before[v] & ~ideal == 0 for v in range(32) if ideal >> v & 1)]
    assert every == found
    assert {then.bit_count() - now.bit_count() for now, then in pairwise(found)} == {0, 1}
    # What a layer changes of what is sent is what the ideal with it sends beyond the other one.
    for ideal in found[5:40:7]:
        for layer in graph.next(ideal, graph.whole):
            cut = [
                sum(size for v in range(32) if each >> v & 1 for u, size in graph.bytes[v].items() if not each >> u & 1)
                for each in (ideal, ideal | 1 << layer)
            ]
            assert abs(cut[1] - cut[0] - graph.gain(ideal, layer)) <= 1e-3


def test_where_ideals_are_too_many_it_is_the_problem_s_own_method():
    wide = generate("pipeline", 1, layers=80, shape="random", devices=16, alike=False)
    assert program(wide, "highs") == NearIdeals()
    assert program(generate("pipeline", 1, layers=8), "highs") == PipelineProgram()
