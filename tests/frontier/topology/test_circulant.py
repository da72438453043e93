import numpy as np
import pyomo.environ as pyo
import pytest
from topology_cases import all_to_all, job
from volume import for_each, some

from ddlopt.frontier.topology.formulations.circulant import CirculantDesign
from ddlopt.frontier.topology.symmetry.cayley import AbelianGroup
from ddlopt.models.errors import NotApplicableError, SolverError
from ddlopt.models.topology import AllReduceGroup, TopologyDesign, evaluate
from ddlopt.models.topology.formulations.rows.throughput import unit_bytes
from ddlopt.models.topology.permutations import coset
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, lp_relaxation

HIGHS = Highs(options={"mip_feasibility_tolerance": 1e-9})


def by_offset(group, offset_bytes):
    """The traffic matrix that sends ``offset_bytes[v]`` from every x to x + v."""
    n = group.order
    traffic = np.zeros((n, n))
    traffic[np.arange(n)[:, None], group.translations.T] = offset_bytes
    return traffic


def reduce_everything(n, gradient_bytes=1.0):
    return (AllReduceGroup(members=tuple(range(n)), gradient_bytes=gradient_bytes),)


def solve(instance, **options):
    method = Exact("circulant", "topology", CirculantDesign(**options), HIGHS)
    return method.solve(instance, Limits(gap=1e-6))


# Optimal circulants for all-to-all, and among those whose generators are rings: found by enumerating all generator sets
# and routing each by linear programming.
OPTIMA = [
    (8, 2, 7.0, 7.0),
    (12, 2, 15.0, 15.0),
    (12, 3, 22 / 3, 8.0),
    (12, 4, 14 / 3, 5.0),
    (16, 2, 23.0, 23.0),
    (16, 3, 34 / 3, 34 / 3),
    (16, 4, 7.25, 7.5),
]


@for_each(("n", "degree", "optimum", "ring_capable"), some(OPTIMA, 2))
def test_best_circulants_for_all_to_all(n, degree, optimum, ring_capable):
    for options, value in ({}, optimum), ({"ring_capable": True}, ring_capable):
        result = solve(all_to_all(n, degree), **options)
        assert result.objective == pytest.approx(value, rel=1e-6)
        assert result.scope_bound == pytest.approx(value, rel=1e-5)
        assert result.bound <= result.scope_bound
        assert "circulant" in result.scope
        assert result.checked


@for_each(
    ("n", "degree", "optics", "relaxation"),
    [
        (8, 2, "one_way", 7.0),
        (12, 2, "one_way", 14.0),
        (12, 3, "one_way", 7.0),
        (16, 2, "one_way", 22.5),
        (16, 4, "one_way", 6.75),
        (12, 3, "duplex", 23 / 3),
        (16, 3, "duplex", 13.0),
    ],
)
def test_lp_relaxation_is_the_abelian_ball_bound(n, degree, optics, relaxation):
    value = lp_relaxation(CirculantDesign(), all_to_all(n, degree, optics=optics)).objective
    assert value == pytest.approx(relaxation, rel=1e-6)


def test_duplex_circulants_know_that_planes_are_matchings():
    assert solve(all_to_all(12, 4, optics="duplex")).objective == pytest.approx(14 / 3, rel=1e-6)
    # Four interfaces on nine servers carry one pair of generators: four-regular graphs of odd order need five planes.
    nine = solve(all_to_all(9, 4, optics="duplex"))
    assert nine.objective == pytest.approx(10.0, rel=1e-6)
    # The two triangles of +-2 on six servers could not be doubled without a sixth plane.
    six = AbelianGroup((6,))
    heavy = job(by_offset(six, [0, 0, 9, 1, 9, 0]), 5, optics="duplex")
    result = solve(heavy)
    assert result.solution.link_counts(heavy).get((0, 2), 0) == 1


@pytest.mark.parametrize(
    ("invariants", "degree", "load"), [((2, 2, 2), 3, 4.0), ((3, 3), 2, 9.0), ((3, 3), 4, 3.0), ((2, 6), 3, None)]
)
def test_other_groups(invariants, degree, load):
    group = AbelianGroup(invariants)
    result = solve(all_to_all(group.order, degree), invariants=invariants)
    assert result.scope == f"Cayley graph of {group}"
    if load is not None:
        assert result.objective == pytest.approx(load, rel=1e-6)
    # The standard generators are among those searched.
    standard = [int(group.index(unit)) for unit in np.eye(len(invariants), dtype=int)]
    if len(standard) == degree:
        assert result.objective <= group.distances(standard).sum() / degree * (1 + 1e-6)


def test_the_product_of_coprime_cycles_is_a_circulant():
    torus = solve(all_to_all(12, 3), invariants=(3, 4))
    assert torus.objective == pytest.approx(22 / 3, rel=1e-6)


@for_each("parallel", [True, False])
@for_each("optics", ["one_way", "duplex"])
def test_rings_alone_meet_the_all_reduce_bound(parallel, optics):
    instance = job(
        np.zeros((8, 8)), 4, optics=optics, parallel_links=parallel, allreduce_groups=reduce_everything(8, 100.0)
    )
    result = solve(instance)
    assert result.objective == pytest.approx(2 * 7 / 8 * 100 / 4, rel=1e-6)
    assert result.status is Status.OPTIMAL
    assert result.scope == "circulant with generator rings"


def test_rings_and_traffic_share_the_links():
    traffic = by_offset(AbelianGroup((8,)), [0, 0, 0, 6, 0, 0, 0, 0])
    groups = reduce_everything(8, 4.0)
    # Two links carry seven bytes of gradient and six of traffic: perfect sharing puts 6.5 on each.
    assert solve(job(traffic, 2, allreduce_groups=groups)).objective == pytest.approx(6.5, rel=1e-6)


def test_groups_on_all_cosets_are_reduced_by_their_own_rings():
    n = 12
    groups = tuple(AllReduceGroup(members=coset(n, 4, start), gradient_bytes=8) for start in range(3))
    result = solve(job(np.zeros((n, n)), 2, allreduce_groups=groups + reduce_everything(n, 6)))
    assert result.checked
    # 12 bytes on +3 and 11 on +1; of the former 1/4 takes three hops over +1 instead, which evens the loads out.
    assert result.objective == pytest.approx(11.75, rel=1e-6)
    assert {ring.group for ring in result.solution.rings} == {0, 1, 2, 3}


def test_rings_may_take_several_hops():
    # One interface: whatever is linked, the traffic to +1 needs it, and the ring goes over the same links.
    groups = reduce_everything(5, 5.0)
    traffic = by_offset(AbelianGroup((5,)), [0, 10, 0, 0, 0])
    result = solve(job(traffic, 1, allreduce_groups=groups))
    assert result.objective == pytest.approx(18.0, rel=1e-6)


def test_without_forwarding_every_offset_with_traffic_is_linked():
    traffic = by_offset(AbelianGroup((7,)), [0, 4, 0, 2, 0, 0, 0])
    result = solve(job(traffic, 3, host_forwarding=False))
    assert result.objective == pytest.approx(2.0, rel=1e-6)
    assert {j: c for i, j, c in result.solution.links if i == 0} == {1: 2, 3: 1}
    with_forwarding = solve(job(traffic, 1))
    assert with_forwarding.objective == pytest.approx(10.0, rel=1e-6)
    # The one link must be +2 for the traffic and +1 or +5 for the ring.
    traffic = by_offset(AbelianGroup((6,)), [0, 0, 4, 0, 0, 0])
    blocked = solve(job(traffic, 1, host_forwarding=False, allreduce_groups=reduce_everything(6)))
    assert blocked.status is Status.NO_SOLUTION


@for_each(
    ("instance", "options", "reason"),
    [
        (all_to_all(6, 2), {"invariants": (7,)}, "Z_7 has 7 elements, but there are 6 servers"),
        (job([[0, 1, 1], [1, 0, 1], [1, 2, 0]], 2), {}, r"\[2\]\[1\] = 2 differs from traffic_bytes\[0\]\[2\] = 1"),
        (
            job(np.zeros((6, 6)), 2, allreduce_groups=(AllReduceGroup(members=(0, 1, 3), gradient_bytes=1),)),
            {},
            r"allreduce_groups\[0\] is not a coset",
        ),
        (
            job(np.zeros((6, 6)), 2, allreduce_groups=(AllReduceGroup(members=(1, 3, 5), gradient_bytes=1),)),
            {},
            r"no group on \[0, 2, 4\]",
        ),
        (
            job(
                np.zeros((4, 4)),
                2,
                allreduce_groups=(
                    AllReduceGroup(members=(0, 2), gradient_bytes=1),
                    AllReduceGroup(members=(1, 3), gradient_bytes=2),
                ),
            ),
            {},
            "do not reduce the same bytes",
        ),
        (
            job(np.zeros((4, 4)), 2, allreduce_groups=reduce_everything(4)),
            {"invariants": (2, 2)},
            "no element of Z_2×Z_2 generates a ring",
        ),
        (all_to_all(4, 2), {"invariants": (2, 2), "ring_capable": True}, "no generator of a ring through all 4"),
        (all_to_all(5, 2, optics="duplex"), {}, "0 usable interfaces"),
    ],
)  # fmt: skip
def test_what_is_not_symmetric_is_refused(instance, options, reason):
    formulation = CirculantDesign(**options)
    with pytest.raises(NotApplicableError, match=reason):
        formulation.build(pyo.Block(concrete=True), instance)
    assert formulation.refuses(instance) is not None


def test_impossible_groups_are_refused_at_once():
    with pytest.raises(ValueError, match="orders >= 2"):
        CirculantDesign(invariants=(1, 6))


def built(instance, **options):
    model = pyo.ConcreteModel()
    model.topology = pyo.Block()
    formulation = CirculantDesign(**options)
    formulation.build(model.topology, instance)
    return formulation, model.topology


@pytest.mark.parametrize("optics", ["one_way", "duplex"])
def test_a_start_is_turned_until_its_leader_comes_first(optics):
    n = 12
    instance = all_to_all(n, 4, optics=optics, parallel_links=False)
    formulation, block = built(instance)
    if optics == "one_way":
        links = tuple((x, (x + g) % n, 1) for x in range(n) for g in (2, 5, 7, 11))
    else:
        links = tuple((x, (x + g) % n, 1) for x in range(n) for g in (4, 5))
        links = tuple((min(i, j), max(i, j), c) for i, j, c in links)
    formulation.start(block, instance, TopologyDesign(instance="job", links=links))
    chosen = {g: int(pyo.value(block.links[g])) for g in block.GENERATORS if pyo.value(block.links[g])}
    assert sum(chosen.values()) == len(links) / n
    assert chosen[1] == 1
    assert pyo.value(block.degree_is_respected.body) <= 4
    assert all(pyo.value(rule.body) <= pyo.value(rule.upper) for rule in block.leader_comes_first.values())


def test_a_start_that_is_not_symmetric_is_left_out():
    instance = all_to_all(4, 2)
    formulation, block = built(instance)
    formulation.start(
        block, instance, TopologyDesign(instance="job", links=((0, 1, 2), (1, 2, 1), (2, 3, 1), (3, 0, 1)))
    )
    assert all(block.links[g].value is None for g in block.GENERATORS)


def test_read_fails_loudly():
    instance = all_to_all(4, 2)
    formulation, block = built(instance)
    for variable in block.component_data_objects(pyo.Var):
        variable.set_value(0)
    with pytest.raises(SolverError, match="no traffic gets through"):
        formulation.read(block, instance)
    block.throughput.set_value(0.5)
    block.links[1].set_value(0.4)
    with pytest.raises(SolverError, match=r"links\[1\] = 0.4"):
        formulation.read(block, instance)


def test_the_block_serves_a_host_model():
    """A price on links: the host asks for the fewest links that keep the busiest one below ten bytes."""
    instance = all_to_all(8, 4)
    model = pyo.ConcreteModel()
    model.network = pyo.Block()
    formulation = CirculantDesign()
    formulation.build(model.network, instance)
    unit = unit_bytes(instance)
    model.fast_enough = pyo.Constraint(expr=10 * model.network.throughput >= unit)
    model.objective = pyo.Objective(expr=sum(model.network.links[g] for g in model.network.GENERATORS))
    outcome = HIGHS.solve(model, Limits())
    assert outcome.objective == pytest.approx(2)
    design = formulation.read(model.network, instance)
    assert evaluate(instance, design).feasible
    assert evaluate(instance, design).objective <= 10 + 1e-6
