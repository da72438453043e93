import numpy as np
import pytest
from full_routing import best_routing
from volume import for_each, seeds

from ddlopt.frontier.topology.circulant_enumeration import CirculantEnumeration, hop_bounds, route
from ddlopt.frontier.topology.formulations.circulant import CirculantDesign
from ddlopt.frontier.topology.symmetry.cayley import AbelianGroup
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.topology import AllReduceGroup, TopologyInstance
from ddlopt.models.topology.permutations import coset
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact


def job(traffic, degree, **more):
    traffic = np.asarray(traffic, dtype=float)
    return TopologyInstance(
        name="job", servers=len(traffic), degree=degree, link_bandwidth_bytes_per_s=1, traffic_bytes=traffic, **more
    )


def all_to_all(n, degree, **more):
    return job(1 - np.eye(n), degree, **more)


def by_offset(group, offset_bytes):
    n = group.order
    traffic = np.zeros((n, n))
    traffic[np.arange(n)[:, None], group.translations.T] = offset_bytes
    return traffic


def random_offsets(rng, n, density=0.7):
    offsets = rng.integers(1, 10, size=n) * (rng.random(n) < density).astype(float)
    offsets[0], offsets[1] = 0, max(offsets[1], 1)
    return offsets


@for_each(
    ("invariants", "generators"),
    [
        ((7,), (1, 3)),
        ((9,), (1, 4, 4)),
        ((10,), (1, 3, 7)),
        ((2, 4), (1, 4)),
        ((3, 3), (1, 3, 4)),
        ((2, 2, 2), (1, 2, 4)),
    ],
)
@for_each("seed", range(2))
def test_the_collapsed_program_equals_the_full_one(invariants, generators, seed):
    group = AbelianGroup(invariants)
    offsets = random_offsets(np.random.default_rng(seed), group.order)
    instance = job(by_offset(group, offsets), len(generators))
    counts = {g: generators.count(g) for g in generators}
    links = {(x, int(group.add(x, g))): c for x in range(group.order) for g, c in counts.items()}
    this = CirculantDesign(invariants).collapsed(instance)
    load, _, _ = route(this, counts)
    assert load == pytest.approx(best_routing(instance, links), rel=1e-6)
    bound = hop_bounds(this, np.array([sorted(generators)]), len(generators))[0]
    assert bound <= load * (1 + 1e-9)


@pytest.mark.parametrize(
    ("n", "generators", "load"), [(12, (1, 3, 4), 8.25), (16, (1, 4, 5), 12.0), (10, (1, 3, 7), 17 / 3)]
)
def test_routing_may_cost_more_than_hops(n, generators, load):
    this = CirculantDesign().collapsed(all_to_all(n, 3))
    assert route(this, dict.fromkeys(generators, 1))[0] == pytest.approx(load, rel=1e-9)


@for_each(
    ("n", "degree", "optics", "load"),
    [(12, 3, "one_way", 22 / 3), (16, 4, "one_way", 7.25), (24, 4, "duplex", 13.4), (32, 4, "duplex", 21.0)],
)
def test_best_circulants_for_all_to_all(n, degree, optics, load):
    result = CirculantEnumeration().solve(all_to_all(n, degree, optics=optics), Limits())
    assert result.objective == pytest.approx(load, rel=1e-9)
    assert result.scope_bound == pytest.approx(load, rel=1e-9)
    assert result.scope == "circulant"
    assert result.bound <= result.objective


def random_symmetric_job(seed):
    """A small job of any kind that the collapse covers."""
    rng = np.random.default_rng(seed)
    invariants = [(6,), (7,), (8,), (9,), (2, 4), (3, 3), (2, 2, 2), (10,)][seed % 8]
    group = AbelianGroup(invariants)
    n = group.order
    offsets = random_offsets(rng, n)
    optics = ("one_way", "duplex")[seed // 8 % 2]
    if seed % 3 == 0:
        offsets += offsets[group.negate(np.arange(n))]
    if seed % 5 == 0:
        offsets = np.where(np.arange(n) > 0, 3.0, 0.0)
    groups = []
    if len(invariants) == 1 and seed % 2:
        groups.append(AllReduceGroup(members=tuple(range(n)), gradient_bytes=float(rng.integers(5, 40))))
        if n % 2 == 0:
            groups += [AllReduceGroup(members=coset(n, n // 2, s), gradient_bytes=7.0) for s in range(2)]
    more = {"parallel_links": bool(seed % 7 < 4), "optics": optics, "allreduce_groups": tuple(groups)}
    degree = 5 if optics == "duplex" and n % 2 else int(rng.integers(3, 5))
    return invariants, job(by_offset(group, offsets), degree, **more)


@pytest.mark.parametrize("seed", seeds(6, 24))
def test_agrees_with_the_formulation(seed):
    invariants, instance = random_symmetric_job(seed)
    formulation = CirculantDesign(invariants)
    assert formulation.refuses(instance) is None
    enumerated = CirculantEnumeration(formulation).solve(instance, Limits(gap=1e-6))
    highs = Highs(options={"mip_feasibility_tolerance": 1e-9})
    solved = Exact("circulant", "topology", formulation, highs).solve(instance, Limits(gap=1e-6))
    assert enumerated.objective == pytest.approx(solved.objective, rel=1e-5)
    assert enumerated.scope_bound <= solved.objective * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "degree", "load"), [(64, 4, 784 / 15), (128, 4, 135.0)])
def test_large_circulants_are_proven(n, degree, load):
    result = CirculantEnumeration().solve(all_to_all(n, degree), Limits(gap=1e-6))
    assert result.objective == pytest.approx(load, rel=1e-9)
    assert result.scope_bound == pytest.approx(load, rel=1e-6)


def test_a_time_limit_leaves_an_honest_bound():
    result = CirculantEnumeration().solve(all_to_all(16, 4), Limits(time_s=1e-9))
    assert result.status is Status.NO_SOLUTION
    assert result.scope_bound == pytest.approx(6.75)


def test_without_a_symmetric_design_there_is_none():
    traffic = by_offset(AbelianGroup((6,)), [0, 0, 4, 0, 0, 0])
    groups = (AllReduceGroup(members=tuple(range(6)), gradient_bytes=1),)
    instance = job(traffic, 1, host_forwarding=False, allreduce_groups=groups)
    result = CirculantEnumeration().solve(instance, Limits())
    assert result.status is Status.NO_SOLUTION
    assert "no symmetric design" in result.message


def test_refusals():
    with pytest.raises(NotApplicableError, match="differs"):
        CirculantEnumeration().solve(job([[0, 1, 1], [1, 0, 1], [1, 2, 0]], 2), Limits())
    assert "more than most_sets = 10" in CirculantEnumeration(most_sets=10).refuses(all_to_all(16, 4))
