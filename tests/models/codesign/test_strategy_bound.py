"""The bound over all topologies against enumeration, exact topologies and itself; cuts; a switch."""

import itertools
from functools import cache
from math import inf

import numpy as np
import pytest
from volume import for_each, seeds, slow, spread

from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import CodesignInstance, job_of
from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.formulations.strategy_bound import StrategyBound
from ddlopt.models.codesign.symmetry.twins import twin_layers
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import InfeasibleError, SolverError
from ddlopt.models.topology import evaluate
from ddlopt.models.topology.bounds import congestion_bounds
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

OPTIONS = (
    {"traffic": 0.5, "twins": 2},
    {"overlap": "full", "optics": "duplex", "servers": 5, "degree": 3, "twins": 1},
    {"memory_slack": 1.05, "twins": 3, "measured": 0.3},
    {"optics": "duplex", "degree": 1, "traffic": 0.3},
    {"host_forwarding": False, "degree": 2, "servers": 6, "twins": 2, "traffic": 0.5},
    {"host_forwarding": False, "parallel_links": False, "degree": 3, "reduction": 0.0, "traffic": 0.5},
)


@cache
def drawn(seed):
    return random_job(np.random.default_rng(seed), **({"layers": 3, "strategies": 3} | OPTIONS[seed % len(OPTIONS)]))


def all_choices(instance):
    return list(itertools.product(*map(range, tables_of(instance).sizes)))


def solve(instance, **options):
    """Optimum in seconds and strategies; inf where there are none."""
    formulation = StrategyBound(**options)
    model = build_model("codesign", formulation, instance)
    outcome = Highs().solve(model, Limits(gap=0))
    if outcome.status is Status.INFEASIBLE:
        return inf, None
    assert outcome.status is Status.OPTIMAL
    return formulation.objective_value(instance, outcome.objective), formulation.read(model.codesign, instance)


def own_bound(instance, choices, network="any"):
    """What the rows say of one choice, from the job that it makes."""
    job = job_of(instance, choices)
    if not tables_of(instance).fits(choices):
        return inf
    z = 0.0
    if job is not None:
        z = float(job.node_bytes.max()) / job.degree
        if network == "any":
            try:
                congestion_bounds(job)
            except InfeasibleError:
                return inf
            z = max(
                z, demand_of(tables_of(instance)).least_bytes(np.concatenate(tables_of(instance).bytes_of(choices)))
            )
            if not job.host_forwarding:
                z = max(z, float(job.traffic_bytes.max()) / job.most_links_of_a_pair)
    return instance.iteration_time_s(tables_of(instance).compute_of(choices), z)


@pytest.mark.parametrize(("seed", "network"), spread(itertools.product(range(2 * len(OPTIONS)), ["any", "switch"]), 5))
def test_it_is_the_least_over_all_choices(seed, network):
    instance = drawn(seed)
    best = min(own_bound(instance, choices, network) for choices in all_choices(instance))
    for collapse in (True, False):
        value, choices = solve(instance, network=network, collapse=collapse)
        assert value == pytest.approx(best, rel=1e-6)
        if choices is not None:
            assert own_bound(instance, choices, network) == pytest.approx(best, rel=1e-6)


@for_each("seed", range(2 * len(OPTIONS)))
def test_a_choice_has_no_more_than_the_bounds_of_its_job(seed):
    instance = drawn(seed)
    demand = demand_of(tables_of(instance))
    for choices in all_choices(instance)[::5]:
        job = job_of(instance, choices)
        if job is None:
            continue
        try:
            known = congestion_bounds(job)
        except InfeasibleError:
            figures = np.concatenate(tables_of(instance).bytes_of(choices))
            assert not instance.host_forwarding or instance.degree == 1 or not demand.unreachable[figures > 0].any()
            continue
        least = demand.least_bytes(np.concatenate(tables_of(instance).bytes_of(choices)))
        assert known["node"] * (1 - 1e-12) <= least <= max(known.values()) * (1 + 1e-12)


def test_bytes_times_hops_of_one_pattern_are_those_of_its_job():
    # One table on server 2, whose output all of six servers want: a star. From the centre two servers are one hop away
    # and three are two hops away: 8 hops there, as many back, of 1/6 each.
    instance = star()
    assert demand_of(tables_of(instance)).hop_bytes.tolist() == [pytest.approx(16 / 6)]
    job = job_of(instance, (0, 0))
    assert congestion_bounds(job)["moore"] == pytest.approx(12 * 16 / 6 / 12)


def star(**changes):
    layouts = [{"batch_parts": 6, "servers": list(range(6))}, {"batch_parts": 1, "servers": [2]}]
    layers = [
        {"name": "table", "output_bytes": 12.0, "strategies": [{"name": "owner", "writes": 1}]},
        {"name": "dense", "strategies": [{"name": "data", "reads": 0, "writes": 0}]},
    ]
    device = {"flops_per_s": 1.0, "convolution_flops_per_s": 1.0, "memory_bytes_per_s": 1.0}
    data = {"name": "star", "servers": 6, "degree": 2, "link_bandwidth_bytes_per_s": 1.0, "device": device}
    return CodesignInstance.from_data(data | {"layouts": layouts, "layers": layers, "edges": [(0, 1)]} | changes)


def test_what_is_received_beyond_what_is_sent_takes_ports_too():
    # Each of three servers sends a byte to each of three others: two of its bytes over one hop, one over two. The links
    # of the receivers that lead out, as many as lead in, are of no use for nine bytes: 12 + 9 over 12 links.
    strategy = {"name": "send", "writes": 0, "traffic": [[s, t, 1.0] for s in range(3) for t in range(3, 6)]}
    instance = star(layers=[{"name": "only", "strategies": [strategy]}], edges=[])
    assert solve(instance)[0] == pytest.approx(21 / 12)
    assert own_bound(instance, (0,)) == pytest.approx(21 / 12)


def test_a_few_bytes_beside_seconds_of_compute_are_no_obstacle():
    strategy = {"name": "data", "writes": 0, "flops": 3.0, "reductions": [{"groups": 0, "bytes": 1e-10}]}
    instance = star(layers=[{"name": "only", "strategies": [strategy]}], edges=[], group_sets=[[list(range(6))]])
    assert solve(instance)[0] == pytest.approx(3)


def test_patterns_are_measured_once_for_all_shifts(monkeypatch):
    layouts = [{"batch_parts": 6, "servers": list(range(6))}]
    layouts += [{"batch_parts": 1, "servers": [server]} for server in range(6)]
    owners = [{"name": f"on-{server}", "writes": 1 + server} for server in range(6)]
    layers = [
        {"name": "table", "output_bytes": 12.0, "strategies": owners},
        {"name": "dense", "strategies": [{"name": "data", "reads": 0, "writes": 0}]},
    ]
    measured = []

    def count(traffic, degree, duplex):
        measured.append(traffic)
        return 7.0

    monkeypatch.setattr("ddlopt.models.codesign.demand.least_hop_bytes", count)
    demand = demand_of(tables_of(star(layouts=layouts, layers=layers)))
    assert demand.hop_bytes.tolist() == [7.0] * 6
    assert len(measured) == 1


@cache
def true_congestion(seed):
    """Least bytes on the busiest link for each choice of a small instance, by the exact model of the topology."""
    options = [{}, {"optics": "duplex"}, {"degree": 1}, {"overlap": "full", "traffic": 0.5}][seed % 4]
    instance = random_job(
        np.random.default_rng(seed), layers=2, strategies=2, density=1.0, mean_bytes=6.0, **({"degree": 2} | options)
    )
    found = {}
    for choices in all_choices(instance):
        job = job_of(instance, choices)
        found[choices] = 0.0
        if job is not None:
            try:
                result = Exact("rings-and-routes", "topology", RingsAndRoutes(rings="all")).solve(job, Limits(gap=1e-7))
            except InfeasibleError:
                found[choices] = inf
                continue
            if result.status is Status.INFEASIBLE:
                found[choices] = inf
                continue
            assert result.status is Status.OPTIMAL
            found[choices] = float(evaluate(job, result.solution).details["max_link_load_bytes"])
    return instance, found


@for_each("seed", seeds(1, 6))
def test_it_is_no_more_than_the_true_optimum_and_meets_it_with_cuts(seed):
    instance, congestion = true_congestion(seed)
    times = {
        choices: instance.iteration_time_s(tables_of(instance).compute_of(choices), z)
        for choices, z in congestion.items()
    }
    best = min(times.values())
    without, _ = solve(instance)
    assert without <= best * (1 + 1e-7)
    cuts = tuple((choices, z) for choices, z in congestion.items() if z < inf)
    value, choices = solve(instance, cuts=cuts)
    assert value <= best * (1 + 1e-7)
    assert value >= best * (1 - 1e-4)
    assert times[choices] <= best * (1 + 1e-4)


@pytest.mark.slow
def test_some_true_optimum_is_above_the_bound():
    # Otherwise the cuts above would have nothing to do.
    gaps = []
    for seed in range(6):
        instance, congestion = true_congestion(seed)
        best = min(instance.iteration_time_s(tables_of(instance).compute_of(c), z) for c, z in congestion.items())
        gaps.append(best / solve(instance)[0] - 1)
    assert max(gaps) > 0.02


def values_of(instance, **options):
    """What the program says of every choice, as (choice, seconds)."""
    formulation = StrategyBound(**options)
    model = build_model("codesign", formulation, instance)
    for choices in all_choices(instance):
        formulation.start(model.codesign, instance, choices)
        model.codesign.strategy.fix()
        outcome = Highs().solve(model, Limits(gap=0))
        feasible = outcome.status is Status.OPTIMAL
        yield choices, formulation.objective_value(instance, outcome.objective) if feasible else inf


@pytest.mark.parametrize("seed", [3, 5, slow(0)])
def test_of_every_choice_it_says_what_the_rows_say(seed):
    for choices, value in values_of(drawn(seed)):
        assert value == pytest.approx(own_bound(drawn(seed), choices), rel=1e-6)


@pytest.mark.parametrize("seed", [1, slow(2), slow(6)])
def test_a_cut_holds_for_all_that_send_no_less_and_for_no_others(seed):
    instance = random_job(np.random.default_rng(seed), layers=3, strategies=3, twins=seed % 3, degree=3, density=0.8)
    tables, rng = tables_of(instance), np.random.default_rng(seed)
    demand, choices = demand_of(tables), all_choices(instance)
    bytes_of = {chosen: np.concatenate(tables.bytes_of(chosen)) for chosen in choices}
    some = [choices[place] for place in rng.choice(len(choices), 3, replace=False)]
    cuts = tuple((cut, 3 * demand.least_bytes(bytes_of[cut])) for cut in some if bytes_of[cut].any())

    def lifted(chosen, margin):
        z = demand.least_bytes(bytes_of[chosen])
        for cut, known in cuts:
            z = max(z, known) if (bytes_of[chosen] >= bytes_of[cut] * margin).all() else z
        return instance.iteration_time_s(tables.compute_of(chosen), z)

    raised = 0
    for chosen, value in values_of(instance, cuts=cuts):
        # Within the margin below a cut's bytes, the cut may or may not say something.
        assert lifted(chosen, 1) * (1 - 2e-5) <= value <= lifted(chosen, 1 - 2e-5) * (1 + 1e-6)
        raised += lifted(chosen, 1) > own_bound(instance, chosen) * 1.01
    assert raised >= len(cuts)


@pytest.mark.parametrize("seed", range(3))
def test_whole_numbers_tell_when_rounding_could_hide_it(monkeypatch, seed):
    # With this margin bytes alone would let every figure of the cut's own choice be less than the cut's.
    monkeypatch.setattr("ddlopt.models.codesign.formulations.rows.congestion_cuts._MARGIN", -0.5)
    instance = random_job(np.random.default_rng(seed), layers=2, strategies=2, twins=seed, density=1.0)
    cut = next(c for c in all_choices(instance) if np.concatenate(tables_of(instance).bytes_of(c)).sum() > 5)
    assert all(len({cut[layer] for layer in layers}) == 1 for layers in twin_layers(tables_of(instance)))
    of_cut = next(value for choices, value in values_of(instance, cuts=((cut, 1000.0),)) if choices == cut)
    assert of_cut == pytest.approx(instance.iteration_time_s(tables_of(instance).compute_of(cut), 1500.0), rel=1e-9)


def test_the_relaxation_is_the_same_with_and_without_collapse():
    for seed, pinned in ((0, 20.942708333), (4, 30.647995283)):
        instance = random_job(np.random.default_rng(seed), layers=4, strategies=4, twins=5)
        assert max(map(len, twin_layers(tables_of(instance)))) > 1
        values = [lp_relaxation(StrategyBound(collapse=collapse), instance).objective for collapse in (True, False)]
        assert values[0] == pytest.approx(values[1], rel=1e-7)
        assert values[0] == pytest.approx(pinned, rel=1e-6)


def test_collapse_counts_instead_of_choosing():
    instance = random_job(np.random.default_rng(1), layers=4, strategies=4, twins=5)
    full, small = (build_model("codesign", StrategyBound(collapse=c), instance).codesign for c in (False, True))
    classes = twin_layers(tables_of(instance))
    assert len(full.strategy) == 9 * 4
    assert len(small.strategy) == len(classes) * 4 < 9 * 4
    assert {layer: max(small.strategy[layer, a].ub for a in range(4)) for layer in small.LAYERS} == {
        layers[0]: len(layers) for layers in classes
    }


@for_each("seed", seeds(2, 6))
def test_racks_share_uplinks(seed):
    instance = random_job(np.random.default_rng(seed), servers=6, layers=3, strategies=3, traffic=0.5)
    racks = ((0, 1), (2, 3, 5), (4,))
    options = {"network": "switch", "racks": racks, "oversubscription": 2.0, "links_per_port": 0.5}

    def alone(choices):
        job = job_of(instance, choices)
        if job is None:
            return tables_of(instance).compute_of(choices)
        z = float(job.node_bytes.max()) / (job.degree * 0.5)
        for rack in racks:
            inside = np.isin(np.arange(6), rack)
            rings = sum(
                group.hop_bytes
                for group in job.allreduce_groups
                if set(group.members) & set(rack) and set(group.members) - set(rack)
            )
            for there, here in ((inside, ~inside), (~inside, inside)):
                crossing = rings + float(job.traffic_bytes[np.ix_(there, here)].sum())
                z = max(z, crossing / (len(rack) * job.degree * 0.5 / 2.0))
        return instance.iteration_time_s(tables_of(instance).compute_of(choices), z)

    best = min(map(alone, all_choices(instance)))
    value, choices = solve(instance, **options)
    assert value == pytest.approx(best, rel=1e-6)
    assert alone(choices) == pytest.approx(best, rel=1e-6)
    assert value > solve(instance, network="switch", links_per_port=0.5)[0] * (1 - 1e-9)


@for_each(
    "options",
    [
        {"network": "tree"},
        {"links_per_port": 0.5},
        {"network": "switch", "links_per_port": 0.0},
        {"network": "switch", "oversubscription": 0.5},
        {"racks": ((0, 1),)},
    ],
)
def test_wrong_options_are_refused(options):
    with pytest.raises(ValueError, match="|".join(options)):
        StrategyBound(**options)


def test_what_does_not_fit_the_instance_is_refused():
    instance = drawn(0)
    assert "racks" in StrategyBound(network="switch", racks=((0, 1), (1, 2, 3))).refuses(instance)
    assert "cuts" in StrategyBound(cuts=(((0,), 1.0),)).refuses(instance)
    assert StrategyBound().refuses(instance) is None
    assert StrategyBound().scope(instance) is None
    assert StrategyBound(network="switch").scope(instance) == "switch"


def test_a_part_of_a_strategy_is_no_strategy():
    instance = drawn(0)
    for collapse in (True, False):
        formulation = StrategyBound(collapse=collapse)
        block = build_model("codesign", formulation, instance).codesign
        formulation.start(block, instance, (1,) * len(instance.layers))
        assert formulation.read(block, instance) == (1,) * len(instance.layers)
        block.strategy[0, 1].set_value(0.5)
        with pytest.raises(SolverError, match="not integral"):
            formulation.read(block, instance)
