"""Tiny jobs of all kinds: the default method proves its answer, which is that of an enumeration."""

import numpy as np
import pytest
from brute_force import brute_force
from topology_cases import job
from volume import for_each

from ddlopt.certificates.topology import check_certificate
from ddlopt.frontier.topology.branch_and_bound.branch_and_bound import BranchAndBound
from ddlopt.models.contracts import Evidence
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.topology import evaluate
from ddlopt.solvers.catalogue import default_method, method
from ddlopt.solvers.contracts import Limits, Status

SEEDS = range(200)
KINDS = ("all-to-all", "groups", "groups and pairs", "pairs")
LIMITS = Limits(time_s=300.0)
"""Each takes seconds; nothing is to fail because the computer is busy."""
MOST_CHOICES = 5000
"""Of link counts by ordered pair, on which the enumeration takes seconds."""


def draw(seed):
    """A job of at most six servers, of any degree, optics and traffic."""
    rng = np.random.default_rng([20, seed])
    n = int(rng.integers(2, 7)) if seed % 5 else 6
    kind = KINDS[seed % 4]
    traffic, groups = np.zeros((n, n)), []
    if kind == "all-to-all":
        traffic[:] = rng.integers(1, 9)
    elif kind != "groups":
        density = rng.choice([0.3, 0.6, 1.0])
        traffic = np.rint(rng.gamma(2.0, 5.0, (n, n))) * (rng.random((n, n)) < density)
    if "groups" in kind:
        for _ in range(rng.integers(1, 4)):
            members = rng.choice(n, rng.integers(2, n + 1), replace=False)
            groups.append((tuple(sorted(members.tolist())), float(rng.integers(2, 40))))
    if not groups and not traffic[~np.eye(n, dtype=bool)].any():
        traffic[0, 1] = 3.0
    np.fill_diagonal(traffic, 0)
    return job(
        traffic,
        int(rng.integers(1, min(4, n - 1) + 1)),
        groups,
        name=f"tiny {seed}",
        optics=str(rng.choice(["one_way", "duplex"])),
        parallel_links=bool(rng.random() < 0.6),
        host_forwarding=bool(rng.random() < 0.75),
    )


def few_choices(instance):
    """Whether all links of the instance can be tried, each with a linear program."""
    n, ways = instance.servers, instance.most_links_of_a_pair + 1
    pairs = n * (n - 1) // (2 if instance.optics == "duplex" else 1)
    return ways**pairs <= MOST_CHOICES


@for_each("seed", SEEDS)
def test_default_proves_what_enumeration_finds(seed):
    instance = draw(seed)
    result = method(default_method(instance), "topology").solve(instance, LIMITS)
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    if result.solution is not None:
        checked = evaluate(instance, result.solution, exact=True)
        assert checked.feasible
        assert float(checked.objective) == pytest.approx(result.objective)
    if few_choices(instance):
        least = brute_force(instance)
        found = np.inf if result.objective is None else result.objective
        assert found == pytest.approx(least, rel=2e-4)


@for_each("seed", SEEDS)
def test_certificate_of_the_branch_and_bound_says_the_same(seed):
    instance = draw(seed)
    if not instance.host_forwarding and instance.allreduce_groups:
        pytest.skip("the model is what ends there")
    search = BranchAndBound(opening=0.01)
    if search.solve(instance, LIMITS).evidence is Evidence.COMBINATORIAL:
        pytest.skip("no tree is needed")
    try:
        result, certificate = search.certified(instance, LIMITS)
    except InfeasibleError:
        assert instance.degree == 1 or not instance.host_forwarding
        return
    checked = check_certificate(instance, certificate)
    if result.status is Status.OPTIMAL:
        assert float(checked.bound_bytes) >= result.objective * (1 - 2e-4)
    else:
        assert result.status is Status.INFEASIBLE
        assert float(checked.bound_bytes) >= instance.traffic_bytes.sum()
