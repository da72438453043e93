"""Links and routes of traffic alone: RingsAndRoutes agrees with brute force and published optima."""

import contextlib
import itertools

import numpy as np
import pyomo.environ as pyo
import pytest
from brute_force import brute_force, link_choices, routed_congestion
from topology_cases import DANOINT, all_to_all, job
from volume import for_each, some, spread

from ddlopt.models.contracts import Evidence
from ddlopt.models.errors import InfeasibleError, SolverError
from ddlopt.models.topology import evaluate
from ddlopt.models.topology.assembly import assemble
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.models.topology.formulations.rows.numbering import renumbering
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model


def danoint():
    return job(DANOINT, parallel_links=False)


def random_instance(n, seed, density=0.7, **options):
    rng = np.random.default_rng(seed)
    traffic = rng.integers(1, 10, (n, n)) * (rng.random((n, n)) < density)
    np.fill_diagonal(traffic, 0)
    traffic[0, 1] += 3
    return job(traffic, **options)


def solve(instance, start=None, limits=None, **options):
    method = Exact("rings-and-routes", "topology", RingsAndRoutes(**{"numbering": True} | options))
    return method.solve(instance, limits or Limits(gap=1e-7), start=start)


def design_of(instance, links):
    """Some design of given links: all traffic on a path that breadth-first search finds."""
    paths = {}
    for s, t in itertools.permutations(range(instance.servers), 2):
        queue = [(s,)]
        for path in queue:
            if path[-1] == t:
                paths[s, t] = [(path, 1.0)]
                break
            queue += [(*path, j) for j in range(instance.servers) if (path[-1], j) in links and j not in path]
    if instance.optics == "duplex":
        links = {(i, j): count for (i, j), count in links.items() if i < j}
    return assemble(instance, links, (), paths)


SIZES = [(3, 2, 0), (4, 1, 1), (4, 2, 2), (4, 3, 3), (5, 2, 4)]


@pytest.mark.parametrize(
    ("optics", "parallel_links", "host_forwarding", "size"),
    spread(itertools.product(["one_way", "duplex"], [True, False], [True, False], SIZES), 6),
)
def test_agrees_with_brute_force(size, optics, parallel_links, host_forwarding):
    n, degree, seed = size
    options = {"optics": optics, "parallel_links": parallel_links, "host_forwarding": host_forwarding}
    instance = random_instance(n, seed, 0.7 if host_forwarding else 0.3, degree=degree, **options)
    best = brute_force(instance)
    if best == np.inf:
        with contextlib.suppress(InfeasibleError):  # what needs no solver is refused while the model is built
            assert solve(instance).status is Status.INFEASIBLE
        return
    result = solve(instance)
    assert result.status is Status.OPTIMAL
    assert result.checked
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert evaluate(instance, result.solution, exact=True).feasible


@pytest.mark.parametrize("optics", ["one_way", "duplex"])
def test_what_is_known_leaves_the_optimum(optics):
    instance = job([[0, 4, 4, 1], [4, 0, 4, 1], [4, 4, 0, 1], [2, 2, 2, 0]], optics=optics)
    best = brute_force(instance)
    for options in ({"form": "congestion"}, {"hops": "none"}, {"hops": "moore"}, {"achievable_bytes": best}):
        assert solve(instance, **options).objective == pytest.approx(best, rel=1e-6)


@for_each(("n", "best"), some([(5, 3.0), (6, 4.2)], 1))
def test_all_to_all_optima(n, best):
    result = solve(all_to_all(n))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(best, rel=1e-6)


def fixed_to(instance, design):
    """Optimum of the model whose links a start has fixed."""
    formulation = RingsAndRoutes(numbering=True)
    model = build_model("topology", formulation, instance)
    formulation.start(model.topology, instance, design)
    model.topology.link.fix()
    if instance.optics == "duplex":
        model.topology.mate.fix()
    outcome = Highs().solve(model, Limits())
    assert outcome.status is Status.OPTIMAL
    return formulation.objective_value(instance, outcome.objective)


@for_each(
    ("traffic", "optics"),
    spread(itertools.product(["all the same", "two kinds", "all different"], ["one_way", "duplex"]), 3),
)
def test_start_is_a_solution_of_the_model(traffic, optics):
    """No choice of links is cut off in every numbering, and those of a start are routed as well as can be."""
    if traffic == "all the same":
        instance = all_to_all(4, optics=optics)
    elif traffic == "two kinds":
        instance = job([[0, 1, 1, 1], [3, 0, 2, 2], [3, 2, 0, 2], [3, 2, 2, 0]], optics=optics)
    else:
        instance = random_instance(4, 3, optics=optics)
    for links in list(link_choices(instance))[::5]:
        try:
            design = design_of(instance, links)
        except SolverError:  # not connected
            continue
        assert fixed_to(instance, design) == pytest.approx(routed_congestion(instance, links), rel=1e-6)


@pytest.mark.slow
def test_start_is_kept_where_time_is_short():
    instance = all_to_all(9)
    circulant = {(i, (i + p) % 9): 1 for i in range(9) for p in (1, 4)}
    design = design_of(instance, circulant)
    result = solve(instance, start=design, limits=Limits(time_s=1.0))
    assert result.objective <= evaluate(instance, design).objective * (1 + 1e-6)


def test_duplex_links_lie_on_planes():
    """A triangle of links needs three planes, so that two leave one of its pairs to a relay."""
    triangle = all_to_all(3, optics="duplex")
    assert solve(triangle).objective == pytest.approx(brute_force(triangle), rel=1e-6)
    alone = all_to_all(3, optics="duplex", host_forwarding=False)
    assert solve(alone).status is Status.INFEASIBLE


def test_refuses_what_it_does_not_cover():
    assert "achievable_bytes is 3" in RingsAndRoutes(achievable_bytes=3).refuses(all_to_all(6))
    assert RingsAndRoutes().refuses(danoint()) is None


def test_too_many_partners_without_forwarding():
    """No matter of options, so that it is refused by nobody: the answer is that there is no design, with the proof."""
    instance = all_to_all(4, host_forwarding=False)
    for options in ({}, {"achievable_bytes": 1.0}):
        assert RingsAndRoutes(**options).refuses(instance) is None
        result = solve(instance, **options)
        assert (result.status, result.evidence) == (Status.INFEASIBLE, Evidence.COMBINATORIAL)
        assert "server 0 must send to 3 servers" in result.message
    with pytest.raises(InfeasibleError):
        build_model("topology", RingsAndRoutes(), instance)


def test_read_refuses_links_laid_in_part():
    instance = danoint()
    model = build_model("topology", RingsAndRoutes(), instance)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
    Highs().solve(model, Limits())
    with pytest.raises(SolverError, match="not integral"):
        RingsAndRoutes().read(model.topology, instance)


def test_bytes_of_very_different_size():
    instance = job([[0, 4e11, 1, 0], [0, 0, 3e11, 1], [1e-3, 0, 0, 2e11], [0, 5, 0, 0]])
    result = solve(instance)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(brute_force(instance), rel=1e-6)
    assert {(route.source, route.target) for route in result.solution.routes} == set(
        zip(*map(list, np.nonzero(instance.traffic_bytes)), strict=True)
    )


TRAFFIC = RingsAndRoutes(form="congestion")


def test_two_jobs_share_the_links_of_a_host_model():
    """Two blocks in one model, coupled by the documented ports: the same links serve both jobs."""
    first, second = random_instance(4, 1), random_instance(4, 2)
    host = pyo.ConcreteModel()
    host.JOBS = pyo.Set(initialize=["a", "b"])
    host.job = pyo.Block(host.JOBS)
    for name, instance in (("a", first), ("b", second)):
        TRAFFIC.build(host.job[name], instance)
    host.same = pyo.Constraint(
        list(host.job["a"].link), rule=lambda m, *key: m.job["a"].link[key] == m.job["b"].link[key]
    )
    host.worst = pyo.Var()
    host.covers = pyo.Constraint(
        host.JOBS,
        rule=lambda m, k: m.worst >= TRAFFIC.objective_value({"a": first, "b": second}[k], 1.0) * m.job[k].congestion,
    )
    host.objective = pyo.Objective(expr=host.worst)
    outcome = Highs().solve(host, Limits(gap=1e-7))
    designs = [TRAFFIC.read(host.job[k], i) for k, i in (("a", first), ("b", second))]
    assert designs[0].links == designs[1].links
    times = [float(evaluate(i, d).objective) for i, d in zip((first, second), designs, strict=True)]
    assert max(times) == pytest.approx(outcome.objective, rel=1e-6)
    assert outcome.objective >= max(brute_force(first), brute_force(second)) * (1 - 1e-6)


def test_parts_are_documented():
    model = build_model("topology", RingsAndRoutes(), random_instance(4, 1, optics="duplex", degree=3))
    assert all(rule.doc for rule in model.topology.component_objects(pyo.Constraint))


def test_interchangeable_servers():
    assert all_to_all(5).servers_are_interchangeable
    assert not danoint().servers_are_interchangeable
    assert not job([[0, 9, 1], [9, 0, 1], [2, 2, 0]]).servers_are_interchangeable
    assert (
        not all_to_all(4)
        .changed(allreduce_groups=[{"members": (0, 1, 2), "gradient_bytes": 1}])
        .servers_are_interchangeable
    )


def test_numbering_leaves_few_choices():
    """Breadth-first numbers leave a small part of all choices, and one at least of each; otherwise none is cut off."""

    def choices(instance):
        model = build_model("topology", RingsAndRoutes(numbering=True), instance)
        block, left = model.topology, []
        for links in link_choices(instance):
            for pair in block.link:
                block.link[pair].set_value(links.get(pair, 0))
            rows = [block.component(name) for name in NUMBERING if block.component(name) is not None]
            if all(pyo.value(row.body) >= pyo.value(row.lower) - 1e-9 for rule in rows for row in _lower(rule)):
                left.append(links)
        return left

    every = list(link_choices(all_to_all(4, parallel_links=False)))
    numbered = choices(all_to_all(4, parallel_links=False))
    assert len(choices(random_instance(4, 1, 1.0, parallel_links=False))) == len(every)
    assert 0 < len(numbered) < len(every) / 3
    for links in every[::7]:
        number = renumbering(4, links)
        moved = {(number[i], number[j]): count for (i, j), count in links.items() if count}
        connected = all(any((i, j) in moved for i in range(j)) for j in range(1, 4))
        assert not connected or moved in [{k: c for k, c in each.items() if c} for each in numbered]


NUMBERING = ("servers_are_found_in_turn", "servers_are_numbered_breadth_first")


def _lower(rule):
    """The rows of a constraint as ``lower <= body``."""
    model = pyo.ConcreteModel()
    model.rows = pyo.ConstraintList()
    for row in rule.values():
        if row.lower is None:
            model.rows.add(-row.body >= -row.upper)
        else:
            model.rows.add(row.body >= row.lower)
    return list(model.rows.values())
