import numpy as np
import pytest
from scipy.optimize import linprog
from volume import for_each

from ddlopt.models.topology.permutations import totients
from ddlopt.solvers.topology.topoopt.select_permutations import choose_geometric, select_permutations


@for_each(
    ("size", "count", "expected"),
    [
        (8, 2, (1, 3)),  # x = 2.83
        (12, 2, (1, 5)),
        (12, 3, (1, 5, 11)),  # 2.29 -> 5, 11.4 -> 11
        (12, 4, (1, 5, 11, 7)),  # 1.86 -> 5, 9.31 -> 11 (nearer than 7), then what is left
        (16, 2, (1, 3)),  # 4 is as near to 3 as to 5: the smaller
        (16, 3, (1, 3, 7)),  # 2.52 -> 3, 7.56 -> 7
        (16, 4, (1, 3, 5, 9)),
        (16, 1, (1,)),
        (16, 0, ()),
    ],
)
def test_paper_rule_on_all_generators(size, count, expected):
    assert select_permutations(totients(size), size, count) == expected


def test_paper_rule_gives_all_where_more_are_wanted():
    assert sorted(select_permutations(totients(12), 12, 9)) == [1, 5, 7, 11]
    assert select_permutations((), 12, 2) == ()


def test_exact_powers_are_hit_exactly():
    """In Z_4097 with 8 = 4096 ** (1 / 4) the series 1, 8, 64, 512 is a multiplicative circulant."""
    assert select_permutations((1, 7, 8, 9, 63, 64, 65, 511, 512, 513), 4096, 4) == (1, 8, 64, 512)


@for_each(
    ("size", "count", "both_ways", "expected"),
    [
        (16, 2, True, (1, 5)),  # ratio 3.87: 1, then the next at or above 3.87
        (16, 3, True, (1, 3, 7)),  # ratio 2.47: 1, 3, 7 (6.08)
        (16, 3, False, (1, 5, 15)),  # ratio 3.87: ends at the largest
        (12, 2, True, (1, 5)),
        (128, 4, True, (1, 5, 13, 39)),  # ratio 3.36
        (6, 2, True, (1, 5)),  # a generator and its reverse: the rule has no guard
        (16, 1, True, (1,)),
        (16, 0, True, ()),
    ],
)
def test_released_rule(size, count, both_ways, expected):
    assert choose_geometric(totients(size), count, both_ways) == expected


@pytest.mark.parametrize("both_ways", [True, False])
def test_released_rule_always_gives_distinct_candidates(both_ways):
    for size in range(2, 60):
        for count in range(1, size):
            chosen = choose_geometric(totients(size), count, both_ways)
            assert len(set(chosen)) == len(chosen) == min(count, len(totients(size)))
            assert set(chosen) <= set(totients(size))


def congestion(n, generators):
    """Bytes on the busiest link when everybody sends one byte to everybody: one flow from server 0, by symmetry."""
    d = len(generators)
    balance = np.zeros((n, n * d + 1))  # columns: arc (u, g), then z
    loads = np.zeros((d, n * d + 1))
    for k, g in enumerate(generators):
        for u in range(n):
            balance[(u + g) % n, u * d + k] += 1
            balance[u, u * d + k] -= 1
            loads[k, u * d + k] = 1
    loads[:, -1] = -1
    cost = np.append(np.zeros(n * d), 1.0)
    return linprog(cost, A_ub=loads, b_ub=np.zeros(d), A_eq=balance[1:], b_eq=np.ones(n - 1)).fun


@for_each(
    ("size", "count", "expected"),
    [(8, 2, 7.0), (12, 2, 15.0), (12, 3, 8.0), (12, 4, 5.0), (16, 2, 30.0), (16, 3, 34 / 3), (16, 4, 7.5)],
)
def test_congestion_of_the_paper_rule(size, count, expected):
    """The optimum over circulants is 23 at (16, 2), 22/3 at (12, 3), 14/3 at (12, 4) and 7.25 at (16, 4)."""
    assert congestion(size, select_permutations(totients(size), size, count)) == pytest.approx(expected)
