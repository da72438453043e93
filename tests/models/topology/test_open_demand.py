"""Demand that a host decides: tied to constants, it must give what a fixed demand of those bytes does."""

import functools
import itertools

import numpy as np
import pyomo.environ as pyo
import pytest
from topology_cases import job
from volume import for_each, spread

from ddlopt.models.errors import OptionError
from ddlopt.models.topology import evaluate
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.models.topology.formulations.rows.throughput import unit_bytes
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model, lp_relaxation

SIMPLE = {"degree": 2, "parallel_links": False}
CASES = {
    "two groups": (4, [((0, 1, 2), 5.0), ((2, 3), 3.0)], SIMPLE),
    "duplex groups": (4, [((0, 1, 2, 3), 4.0), ((1, 3), 3.0)], {"degree": 3, "optics": "duplex"}),
    "parallel": (4, [((0, 1, 2, 3), 6.0)], {"degree": 2}),
    "direct": (4, [((0, 1, 2, 3), 6.0)], SIMPLE | {"degree": 3, "host_forwarding": False}),
}
OPTIONS = [
    {"form": "congestion"},
    {"form": "congestion", "scale_bytes": 1.7},
    {"form": "throughput", "scale_bytes": 1.7},
    {"form": "throughput", "least_bytes": 0.5},
    {"form": "throughput", "least_bytes": 0.5, "scale_bytes": 40.0},
]


def pair_of(name, seed=5):
    """A template, and what is sent: some bytes less of everything, and of every other pair nothing."""
    servers, groups, options = CASES[name]
    rng = np.random.default_rng(seed)
    traffic = rng.integers(1, 10, (servers, servers)) * (rng.random((servers, servers)) < 0.6)
    np.fill_diagonal(traffic, 0)
    sent = np.maximum(0.0, traffic - rng.integers(0, 6, traffic.shape))
    less = [(members, size * (0.9 - 0.4 * k)) for k, (members, size) in enumerate(groups)]
    return job(traffic, groups=groups, **options), job(sent, groups=less, **options)


def hosted(formulation, template, sent):
    """A host that sends what ``sent`` does, and its solution."""
    host = pyo.ConcreteModel()
    host.network = pyo.Block()
    formulation.build(host.network, template)
    rate = host.network.throughput if hasattr(host.network, "throughput") else 1.0
    unit = host.network.unit_bytes
    hop_bytes = {group.members: group.hop_bytes for group in sent.allreduce_groups}
    host.rows = pyo.ConstraintList()
    for k, group in enumerate(template.allreduce_groups):
        host.rows.add(host.network.group_units[k] == hop_bytes.get(group.members, 0.0) / unit * rate)
    for s, t in host.network.TRAFFIC:
        host.rows.add(host.network.traffic_units[s, t] == float(sent.traffic_bytes[s, t]) / unit * rate)
    host.best = pyo.Objective(expr=host.network.objective)
    return host


def solve_hosted(formulation, template, sent):
    host = hosted(formulation, template, sent)
    outcome = Highs().solve(host, Limits(gap=1e-8))
    assert outcome.status is Status.OPTIMAL
    value = formulation.objective_value(template, outcome.objective)
    if formulation.rings == "relaxed":
        return value
    design = formulation.read(host.network, sent)
    checked = evaluate(sent, design, exact=True)
    assert checked.violations == ()
    assert float(checked.objective) == pytest.approx(value, rel=1e-6)
    return value


def solve_fixed(formulation, sent):
    model = build_model("topology", formulation, sent)
    outcome = Highs().solve(model, Limits(gap=1e-8))
    assert outcome.status is Status.OPTIMAL
    return formulation.objective_value(sent, outcome.objective)


@functools.cache
def best_of(name):
    """Least time of what is sent and of all that may be."""
    template, sent = pair_of(name)
    return solve_fixed(RingsAndRoutes(rings="all"), sent), solve_fixed(RingsAndRoutes(rings="all"), template)


@pytest.mark.parametrize(("name", "options"), spread(itertools.product(CASES, OPTIONS), 5), ids=str)
def test_links_rings_and_routes_of_an_open_demand(name, options):
    template, sent = pair_of(name)
    expected, more = best_of(name)
    assert expected < more * 0.9, "sending less makes a difference"
    value = solve_hosted(RingsAndRoutes(rings="all", demand="open", **options), template, sent)
    assert value == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("form", ["congestion", "throughput"])
def test_relaxation_is_a_bound(form):
    """All-to-all traffic of one byte among five servers, where a fifth more may be sent; z is 3, but 2 bytes a link
    leave every server."""
    sent = np.ones((5, 5)) - np.eye(5)
    template = job(1.2 * sent)
    least = {"least_bytes": 2.0, "scale_bytes": 40.0} if form == "throughput" else {}
    formulation = RingsAndRoutes(demand="open", form=form, **least)
    host = hosted(formulation, template, job(sent))
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(host)
    assert formulation.objective_value(template, Highs().solve(host, Limits()).objective) == pytest.approx(2.0)


def test_with_all_that_may_be_sent_the_relaxation_is_that_of_a_fixed_demand():
    template, _ = pair_of("parallel")
    host = hosted(RingsAndRoutes(demand="open", form="congestion"), template, template)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(host)
    opened = Highs().solve(host, Limits()).objective * unit_bytes(template)
    fixed = lp_relaxation(RingsAndRoutes(form="congestion"), template).objective
    assert opened <= fixed * (1 + 1e-6)


@pytest.mark.parametrize("form", ["congestion", "throughput"])
def test_an_all_reduce_that_fills_every_link(form):
    template = job(np.zeros((3, 3)), groups=[((0, 1, 2), 6.0)], degree=1)
    least = {"least_bytes": 8.0} if form == "throughput" else {}
    value = solve_hosted(RingsAndRoutes(demand="open", form=form, **least), template, template)
    assert value == pytest.approx(2 * 2 / 3 * 6)


def laid(template):
    if template.optics == "duplex":
        return ((0, 1, 1), (0, 3, 1), (1, 2, 1), (2, 3, 1))
    if not template.host_forwarding:
        return tuple((i, j, 1) for i in range(4) for j in range(4) if i != j)
    return tuple((i, (i + p) % 4, 1) for i in range(4) for p in (1, 2))


@for_each("rings", ["all", "generators", "relaxed"])
@for_each("name", CASES)
def test_given_links_with_an_open_demand(name, rings):
    template, sent = pair_of(name)
    expected = solve_fixed(RingsAndRoutes(rings, links=laid(template)), sent)
    value = solve_hosted(
        RingsAndRoutes(rings, "congestion", links=laid(template), demand="open", scale_bytes=3.0), template, sent
    )
    assert value == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("given", [False, True])
def test_groups_with_nothing_to_reduce_drop_out(given):
    template, sent = pair_of("two groups")
    fewer = job(sent.traffic_bytes, groups=[((2, 3), 1.5)], **SIMPLE)
    formulation = RingsAndRoutes("all", "congestion", demand="open", links=laid(template) if given else None)
    host = hosted(formulation, template, fewer)
    assert Highs().solve(host, Limits()).status is Status.OPTIMAL
    design = formulation.read(host.network, fewer)
    assert {ring.group for ring in design.rings} == {0}
    assert {ring.members for ring in design.rings} <= {(2, 3), (3, 2)}
    assert evaluate(fewer, design).feasible


def test_what_a_host_may_send_is_no_traffic_that_must_be_possible():
    """Five receivers are too many for two links without forwarding; one of them is not."""
    traffic = np.zeros((6, 6))
    traffic[0, 1:] = 1.0
    template = job(traffic, host_forwarding=False)
    one = np.zeros((6, 6))
    one[0, 4] = 1.0
    sent = job(one, host_forwarding=False)
    for form in ("congestion", "throughput"):
        formulation = RingsAndRoutes(demand="open", form=form)
        assert solve_hosted(formulation, template, sent) == pytest.approx(0.5)


def test_options_that_would_give_no_bound_are_refused():
    with pytest.raises(OptionError, match="demand='open'"):
        RingsAndRoutes(least_bytes=1.0)
    with pytest.raises(OptionError, match="positive"):
        RingsAndRoutes(demand="open", form="congestion", scale_bytes=0.0)
    assert RingsAndRoutes(demand="open").least_bytes is None
