"""The decomposition against every choice of strategies with its exact topology."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
from volume import for_each, slow

from ddlopt.frontier.codesign.bounds import prices_bound
from ddlopt.frontier.codesign.formulations.whole_ports import WholePorts, server_classes
from ddlopt.frontier.codesign.joint.estimate import Estimate
from ddlopt.frontier.codesign.joint.joint import Joint
from ddlopt.frontier.codesign.joint.links import constructed
from ddlopt.frontier.codesign.joint.master import Master, Proposal
from ddlopt.frontier.codesign.joint.search import Search
from ddlopt.frontier.codesign.joint.topology import deepened, first_answer
from ddlopt.frontier.codesign.layer_tree import LayerTree, Sums, best_weights
from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import CodesignInstance, Device, Layer, Layout, Reduction, Strategy, job_of
from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.evaluate import evaluate
from ddlopt.models.codesign.formulations.rows.coupling import plan_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import InfeasibleError, NoSolutionError, OptionError
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.codesign.planes import answer_topology
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import Clock

DEVICE = {"flops_per_s": 1.0, "convolution_flops_per_s": 1.0, "memory_bytes_per_s": 1.0}


def every_choice(instance):
    """(choices, iteration time with an exact topology) of every choice that fits."""
    exact = "rings-and-routes:numbering=true", "rings-and-routes:rings=all"
    tables = tables_of(instance)
    known = {}
    for choices in itertools.product(*map(range, tables.sizes)):
        if not tables.fits(choices):
            continue
        reduced, moved = tables.bytes_of(choices)
        key = (*reduced.tolist(), *moved.tolist())
        if key not in known:
            try:
                job = job_of(instance, choices)
                method = exact[job is not None and len(job.allreduce_groups) > 0]
                _, known[key], _ = answer_topology(job, method, Limits(gap=1e-6))
            except (InfeasibleError, NoSolutionError):
                known[key] = np.inf
        yield choices, instance.iteration_time_s(tables.compute_of(choices), known[key])


def drawn(seed, **options):
    """A drawn job of four servers."""
    fields = {"servers": 4, "layers": 3, "strategies": 2, "degree": 2}
    return random_job(np.random.default_rng(seed), **(fields | options))


@for_each(
    ("seed", "options"),
    [
        slow(1, {"degree": 1}),
        slow(2, {"overlap": "full", "degree": 1}),
        (3, {"optics": "duplex"}),
        slow(4, {"memory_slack": 1.0, "traffic": 0.5}),
        slow(5, {"host_forwarding": False, "degree": 3}),
        slow(6, {"parallel_links": False, "overlap": "full"}),
    ],
)
def test_joint_is_the_best_of_all_choices(seed, options):
    instance = drawn(seed, **options)
    best = min(time for _, time in every_choice(instance))
    result = Joint().solve(instance, Limits())
    if np.isinf(best):
        assert result.status is Status.INFEASIBLE
        return
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(best, rel=1e-4)
    assert result.bound <= best * (1 + 1e-6)
    assert result.bound >= best * (1 - 1.1e-4)


def test_the_same_steps_are_taken_on_a_busy_machine(monkeypatch):
    """Nothing but a time limit is in seconds: clocks that run a thousand times as fast change nothing."""
    instance = random_job(np.random.default_rng(4), servers=5, degree=2, layers=3, strategies=2)
    method = Joint(most_choices=2, topology_s=1e6)
    calm = method.solve(instance, Limits(gap=0.02))
    real = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: 1000 * real())
    busy = method.solve(instance, Limits(gap=0.02))
    assert busy.solution == calm.solution
    for count in ("masters", "choices", "designs", "rounds"):
        assert busy.details[count] == calm.details[count]


def test_a_better_design_for_the_incumbent_is_noticed():
    """What was assumed of it before is forgotten, and the master asked again."""
    instance = random_job(np.random.default_rng(0), servers=3, degree=2, layers=2, strategies=2)
    clock = Clock(Limits(), None)
    search = Search(instance, Master(instance), clock, 0, 60.0, 10)
    search.floor_s = 0.0
    candidate, _ = search._candidate((0, 0))
    assert candidate.job is not None
    assert search._update(candidate, replace(candidate.answer, busiest_bytes=9.0, method="one"))
    search.exhausted = True
    assert search._update(candidate, replace(candidate.answer, busiest_bytes=8.0, method="another"))
    assert not search.exhausted


@pytest.mark.parametrize("seed", [2, 7])
def test_choices_that_suit_whole_ports_are_better_to_begin_with(seed, monkeypatch):
    instance = random_job(np.random.default_rng(seed), servers=8, degree=3, layers=4, strategies=4)
    monkeypatch.setattr(Search, "_solve_without_cuts", lambda self: None)

    def opened():
        search = Search(instance, Master(instance), Clock(Limits(), None), 0, 60.0, 10)
        search.floor_s = prices_bound(instance)
        search._open()
        return search

    fitted = opened()
    # With longer detours the program is none on all plans, so it must not bound them.
    assert fitted.proposals[-1].bound_s == 0.0
    monkeypatch.setattr(Search, "_fit_ports", lambda self: None)
    assert fitted.best_s < 0.97 * opened().best_s


@pytest.mark.parametrize(("seed", "optics"), [(0, "one_way"), slow(1, "duplex")])
def test_the_opening_bound_is_at_least_the_least_of_all_choices(seed, optics):
    """The program on strategies is solved in whole numbers, and no assumption weakens what it says."""
    instance = random_job(np.random.default_rng(seed), servers=8, degree=2, layers=4, strategies=4, optics=optics)
    tables, demand = tables_of(instance), demand_of(tables_of(instance))
    least = min(
        instance.iteration_time_s(
            tables.compute_of(choices), demand.least_bytes(np.concatenate(tables.bytes_of(choices)))
        )
        for choices in itertools.product(*map(range, tables.sizes))
        if tables.fits(choices)
    )
    assert prices_bound(instance) < least * (1 - 1e-3)
    search = Search(instance, Master(instance), Clock(Limits(), None), 0, 60.0, 10)
    search.floor_s = prices_bound(instance)
    search._open()
    # Closed forms for the choices that it likes best may say more.
    assert least * (1 - 1e-4) <= search.bound_s <= search.best_s * (1 + 1e-9)


def test_a_plan_of_a_relative_gives_its_strategies():
    """The design for one-way links is none for duplex ones, but its strategies are tried there."""
    instance = drawn(3)
    relative = (
        Joint(most_choices=2).solve(instance, Limits(gap=0.1)).solution.model_copy(update={"instance_digest": None})
    )
    duplex = instance.model_copy(update={"optics": "duplex"})
    search = Search(duplex, Master(duplex), Clock(Limits(), None), 0, 60.0, 10)
    search.floor_s = prices_bound(duplex)
    assert not evaluate(duplex, relative).feasible
    search._offer_plan(relative)
    (candidate,) = search.candidates.values()
    assert candidate.choices == relative.choices(duplex)
    assert search.best is candidate
    # Nothing more is done for it where nothing is left to do.
    candidate.answer = replace(candidate.answer, level=10)
    known = candidate.answer
    search._work_on(candidate)
    assert candidate.answer is known


@pytest.mark.parametrize("seed", range(4))
def test_whole_ports_never_bound_above_a_plan(seed):
    instance = drawn(seed, layers=2, degree=1 + seed % 2, optics="one_way" if seed < 2 else "duplex")
    times = dict(every_choice(instance))
    best = min(times.values())
    for most_s in (best, 2 * best):
        proposal = Master(instance).propose({}, Limits(gap=1e-6), 0, None, most_s)
        assert proposal.bound_s <= best * (1 + 1e-5)


def one_layer(servers, degree, *group_sets_and_bytes):
    """A job without choice: one layer that reduces in the given sets."""
    return CodesignInstance(
        name="one layer",
        servers=servers,
        degree=degree,
        link_bandwidth_bytes_per_s=1.0,
        device=Device(**DEVICE),
        layouts=(Layout(batch_parts=servers, servers=tuple(range(servers))),),
        group_sets=tuple(groups for groups, _ in group_sets_and_bytes),
        layers=(
            Layer(
                name="layer",
                strategies=(
                    Strategy(
                        name="only",
                        writes=0,
                        reductions=tuple(
                            Reduction(groups=place, bytes=amount)
                            for place, (_, amount) in enumerate(group_sets_and_bytes)
                        ),
                    ),
                ),
            ),
        ),
    )


def test_whole_ports_see_that_a_link_leads_to_one_server():
    # Each of four servers sends 3 bytes in its block, 1 in its coset, on 2 ports: at least (3 + 1) / 2 on each. With
    # one link into either, 3 - z bytes of the block take two hops: 2 z >= 3 + 1 + (3 - z). Two for the block: 5 / 2.
    blocks, cosets = ((0, 1), (2, 3)), ((0, 2), (1, 3))
    instance = one_layer(4, 2, (blocks, 3.0), (cosets, 1.0))
    assert congestion_bounds(job_of(instance, (0,)))["all-reduce"] == 2.0
    proposal = Master(instance).propose({}, Limits(gap=1e-6), 0, None, 10.0)
    assert proposal.bound_s == pytest.approx(7 / 3, rel=1e-4)
    _, busiest, _ = answer_topology(job_of(instance, (0,)), "exact", Limits(gap=1e-6))
    assert busiest >= 7 / 3 * (1 - 1e-6)


def test_whole_ports_with_longer_detours_are_no_bound():
    instance = one_layer(4, 2, (((0, 1), (2, 3)), 3.0), (((0, 2), (1, 3)), 1.0))
    assert Master(instance).propose({}, Limits(), 0, None, 10.0, detour_hops=4.0).bound_s == 0


def test_kinds_of_servers():
    blocks, everybody = ((0, 1), (2, 3)), ((0, 1, 2, 3),)
    instance = one_layer(4, 2, (blocks, 1.0), (everybody, 1.0), (((0, 2),), 1.0))
    classes = {each.servers: set(each.kinds) for each in server_classes(tables_of(instance), parallel_links=True)}
    # Servers 0 and 2 also share a group of their own; servers of the smaller kind {1} are worth less than either.
    assert classes == {(0, 2): {frozenset({0, 1}), frozenset({1, 2})}, (1, 3): {frozenset({0, 1})}}
    apart = {each.servers: set(each.kinds) for each in server_classes(tables_of(instance), parallel_links=False)}
    assert apart[1, 3] == {frozenset({0, 1}), frozenset({1})}


def test_assumptions_are_taken_off_the_bound():
    proposal = Proposal((0,), 10.0, {(0,): 8.0, (1,): 5.0})
    assert proposal.certified_s({(0,): 8.0, (1,): 5.0}, 2.0) == 10.0
    assert proposal.certified_s({(0,): 6.0, (1,): 4.0}, 2.0) == 9.0
    assert proposal.certified_s({(0,): 9.0, (1,): 9.0}, 2.0) == 10.0


@pytest.mark.slow
def test_a_wrong_assumption_never_shows_in_the_bound():
    instance = drawn(7)
    times = dict(every_choice(instance))
    best = min(times.values())
    known = {choices: first_answer(job_of(instance, choices)).bound_bytes for choices in times}
    assumed = dict.fromkeys(list(times)[:3], 50.0)
    proposal = Master(instance).propose(assumed, Limits(gap=1e-6), 0)
    assert proposal.certified_s(known, instance.link_bandwidth_bytes_per_s) <= best * (1 + 1e-6)


def test_memory_that_holds_no_strategy_names_the_layer():
    fields = one_layer(4, 2, (((0, 1, 2, 3),), 1.0)).model_dump()
    fields["device"]["memory_bytes"] = 10.0
    fields["layers"][0]["strategies"][0]["memory_bytes"] = 12.0
    result = Joint().solve(CodesignInstance.from_data(fields), Limits())
    assert result.status is Status.INFEASIBLE
    assert "'layer'" in result.message
    assert "2 bytes are missing" in result.message


def test_memory_that_holds_no_choice_is_infeasible():
    strategies = (Strategy(name="only", writes=0, memory_bytes=6.0),)
    instance = CodesignInstance(
        name="two of them",
        servers=2,
        degree=1,
        link_bandwidth_bytes_per_s=1.0,
        device=Device(**DEVICE, memory_bytes=10.0),
        layouts=(Layout(batch_parts=2, servers=(0, 1)),),
        layers=tuple(Layer(name=name, strategies=strategies) for name in "ab"),
    )
    result = Joint().solve(instance, Limits())
    assert result.status is Status.INFEASIBLE
    assert result.objective is None
    assert "two of them" in result.message


def test_nothing_to_send():
    lone = Strategy(name="lone", writes=1, measured_s=1.0)
    spread = Strategy(name="spread", writes=0, measured_s=0.9, reductions=(Reduction(groups=0, bytes=1.0),))
    fields = one_layer(4, 2, (((0, 1, 2, 3),), 1.0)).model_dump()
    fields["layouts"] = [*fields["layouts"], {"batch_parts": 1, "servers": [0]}]
    fields["layers"] = [{"name": "layer", "strategies": [lone.model_dump(), spread.model_dump()]}]
    result = Joint().solve(CodesignInstance.from_data(fields), Limits())
    assert result.status is Status.OPTIMAL
    assert result.objective == 1.0
    assert result.solution.strategies == ("lone",)
    assert result.solution.design.links == ()


def test_a_seed_gives_the_same_plan():
    instance = drawn(11, strategies=3)
    first, second = (Joint().solve(instance, Limits(), seed=3) for _ in range(2))
    assert first.solution == second.solution
    assert first.bound == second.bound


@pytest.mark.slow
def test_a_start_is_never_lost():
    instance = drawn(8)
    best, time_s = min(every_choice(instance), key=lambda each: each[1])
    design, _, _ = answer_topology(job_of(instance, best), "exact", Limits(gap=1e-6))
    result = Joint(most_choices=1).solve(instance, Limits(time_s=0.05), start=plan_of(instance, best, design))
    assert result.objective <= time_s * (1 + 1e-6)
    assert result.bound <= time_s * (1 + 1e-6)


def test_trace_narrows():
    result = Joint().solve(drawn(3), Limits())
    known = [point.incumbent for point in result.trace if point.incumbent is not None]
    bounds = [point.bound for point in result.trace]
    assert known == sorted(known, reverse=True)
    assert known[-1] == pytest.approx(result.objective)
    assert max(bounds) <= result.objective * (1 + 1e-9)


@pytest.mark.parametrize("option", [{"topology_s": 0.0}, {"most_choices": 0}])
def test_odd_options(option):
    with pytest.raises(OptionError, match=next(iter(option))):
        Joint(**option)


@for_each(("optics", "servers", "degree"), [("one_way", 12, 4), ("duplex", 12, 4), ("duplex", 8, 3), ("one_way", 9, 2)])
def test_all_reduce_among_all_is_as_fast_as_ports_allow(optics, servers, degree):
    job = TopologyInstance(
        name="all-reduce",
        servers=servers,
        degree=degree,
        link_bandwidth_bytes_per_s=1.0,
        optics=optics,
        allreduce_groups=[{"members": tuple(range(servers)), "gradient_bytes": 1.0}],
        traffic_bytes=np.zeros((servers, servers)),
    )
    found, _ = constructed(job, 0, Clock(Limits(), None))
    rings = degree if optics == "one_way" or degree % 2 == 0 else degree - 1
    assert found.congestion_bytes <= 2 * (servers - 1) / servers / rings * (1 + 2e-3)


def test_columns_suit_the_groups():
    # Blocks and cosets reduce the same: two columns for either leave nothing to be desired.
    n, g = 16, 4
    groups = [*(range(b, b + g) for b in range(0, n, g)), *(range(r, n, g) for r in range(g))]
    job = TopologyInstance(
        name="blocks and cosets",
        servers=n,
        degree=4,
        link_bandwidth_bytes_per_s=1.0,
        allreduce_groups=[{"members": tuple(group), "gradient_bytes": 1.0} for group in groups],
        traffic_bytes=np.zeros((n, n)),
    )
    found, _ = constructed(job, 0, Clock(Limits(), None))
    assert found.congestion_bytes == pytest.approx(max(congestion_bounds(job).values()), rel=5e-3)


def test_effort_never_makes_an_answer_worse():
    job = job_of(drawn(12, degree=1), (0, 0, 0)) or job_of(drawn(13, degree=1), (0, 0, 0))
    answer = first_answer(job)
    for _ in range(3):
        deeper = deepened(job, answer, Limits(), 0)
        assert deeper.level == answer.level + 1
        assert deeper.busiest_bytes <= answer.busiest_bytes
        assert deeper.bound_bytes >= answer.bound_bytes
        answer = deeper
    assert answer.bound_bytes <= answer.busiest_bytes
    assert answer.design is not None


def test_estimate_is_exact_where_columns_suit_the_groups():
    # Two of four columns for the blocks, two for the cosets: each link carries 2 (k - 1) / k / 2.
    blocks = tuple(tuple(range(b, b + 4)) for b in range(0, 16, 4))
    cosets = tuple(tuple(range(r, 16, 4)) for r in range(4))
    estimate = Estimate(one_layer(16, 4, (blocks, 1.0), (cosets, 1.0)))
    assert estimate.load_bytes((0,)) == pytest.approx(0.75, rel=1e-3)
    # Three times as much in the blocks: three columns and one.
    estimate = Estimate(one_layer(16, 4, (blocks, 3.0), (cosets, 1.0)))
    assert estimate.load_bytes((0,)) == pytest.approx(1.5, rel=1e-3)


def test_estimated_traffic_takes_the_links_of_the_columns():
    """Blocks and cosets of four servers, a column each: to the opposite corner it is two links."""
    sets = (((0, 1), (2, 3)), 1.0), (((0, 2), (1, 3)), 1.0)
    both = one_layer(4, 2, *sets)
    (layer,) = both.layers
    (strategy,) = layer.strategies
    for target, hops in ((1, 1), (2, 1), (3, 2)):
        sending = strategy.model_copy(update={"traffic": ((0, target, 8.0),)})
        instance = both.model_copy(update={"layers": (layer.model_copy(update={"strategies": (sending,)}),)})
        estimate = Estimate(instance)
        (place,) = [p for p, row in enumerate(estimate.compositions.tolist()) if row == [1, 1]]
        (amount,) = (value for figure, value in tables_of(instance).own[0][0].items() if figure >= len(sets))
        assert (amount * estimate.pattern_hops[place]).tolist() == [8.0 * hops / 4]


def test_a_plan_of_a_duplex_relative_is_one_for_links_of_one_way():
    duplex = drawn(3, optics="duplex")
    relative = (
        Joint(most_choices=2).solve(duplex, Limits(gap=0.1)).solution.model_copy(update={"instance_digest": None})
    )
    instance = duplex.model_copy(update={"optics": "one_way"})
    assert not evaluate(instance, relative).feasible
    search = Search(instance, Master(instance), Clock(Limits(), None), 0, 60.0, 10)
    search.floor_s = prices_bound(instance)
    search._offer_plan(relative)
    assert search.best_s == pytest.approx(evaluate(duplex, relative).objective)
    assert evaluate(instance, search.plan()).feasible


def test_fitted_strategies_are_estimated_no_slower():
    instance = drawn(10, layers=5, strategies=4, memory_slack=1.2)
    estimate = Estimate(instance)
    usual = next(
        choices
        for choices in itertools.product(*map(range, tables_of(instance).sizes))
        if tables_of(instance).fits(choices)
    )
    found = estimate.improved(usual, Clock(Limits(), None), 0, 500)
    assert estimate.time_s(found) <= estimate.time_s(usual)
    assert tables_of(instance).fits(found)
    assert all(
        estimate.time_s((*found[:layer], a, *found[layer + 1 :])) >= estimate.time_s(found) * (1 - 1e-4)
        for layer in range(5)
        for a in range(4)
    )


def test_whole_ports_build_nothing_more_without_a_limit():
    instance = drawn(1)
    model = build_model("codesign", WholePorts(), instance)
    assert model.codesign.component("links") is None
    outcome = Highs().solve(model, Limits(gap=1e-9))
    assert outcome.status is Status.OPTIMAL
    assert demand_of(tables_of(instance)).degree == instance.degree


def test_layers_of_which_no_choice_sends_anything_to_the_next():
    instance = random_job(np.random.default_rng(48647418), servers=2, degree=1, layers=2, strategies=2)
    assert not tables_of(instance).patterns
    tree = LayerTree(tables_of(instance))
    assert 0 < Sums(tree, best_weights(tree)).least_s <= min(value for *_, value in every_choice(instance))
