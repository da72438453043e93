import pytest
from sympy import divisors, isprime, totient
from sympy.combinatorics import Permutation
from volume import for_each

from ddlopt.models.topology.permutations import coset, is_coset, ring, totient_perms, totients


@pytest.mark.parametrize("k", [2, 3, 12, 16, 60])
def test_totients_are_the_generators_of_rings(k):
    assert len(totients(k)) == totient(k)
    for p in range(1, k):
        one_cycle = Permutation([(a + p) % k for a in range(k)]).cycle_structure == {k: 1}
        assert one_cycle == (p in totients(k))


@for_each("k", [2, 3, 4, 12, 16, 97, 4096])
def test_primes_only_keeps_one_and_the_primes_not_dividing_k(k):
    kept = totient_perms(k, primes_only=True)
    assert kept == tuple(p for p in totients(k) if p == 1 or isprime(p))


def test_totients_for_4096_servers():
    assert totients(4096) == tuple(range(1, 4096, 2))


def test_ring_visits_all_members_by_its_generator():
    members = (3, 4, 9, 11, 20)
    assert ring(members, 2) == (3, 9, 20, 4, 11)
    assert len({ring(members, p) for p in totients(5)}) == 4


@for_each(("members", "p"), [((0, 1, 2, 3), 2), ((0, 1, 2), 3), ((0,), 1), ((0, 1, 2), 0)])
def test_ring_refuses_generators_that_close_early(members, p):
    with pytest.raises(ValueError, match="not a ring"):
        ring(members, p)


def test_totients_refuses_a_single_member():
    with pytest.raises(ValueError, match="k = 1"):
        totients(1)


@pytest.mark.parametrize("n", [12, 16])
def test_cosets_partition_the_servers_and_are_recognised(n):
    for k in divisors(n):
        parts = [coset(n, k, start) for start in range(n // k)]
        assert sorted(sum(parts, ())) == list(range(n))
        assert all(is_coset(part, n) for part in parts)
    assert not is_coset((0, 1, 4, 8), n)
    assert not is_coset((0, 1), n)
    assert not is_coset((), n)
    with pytest.raises(ValueError, match="no subgroup of 5"):
        coset(n, 5, 0)
