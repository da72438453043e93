"""The Newton system of eigenvalue programs on graphs, edge by edge."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np

from ddlopt.models.gossip.spectral.laplacians import Floats, Ints
from ddlopt.models.kernels import kernel


def add_products(into: Floats, first: Floats, second: Floats, ends: Ints) -> None:
    r"""Add :math:`(a_e^\top F a_f)(a_e^\top G a_f)` for all pairs of edges, of symmetric (n, n) F and G, to (m, m)."""
    _add_products(into, np.ascontiguousarray(first), np.ascontiguousarray(second), ends[:, 0].copy(), ends[:, 1].copy())


@kernel("(f8[:, ::1], const(f8[:, ::1]), const(f8[:, ::1]), i8[::1], i8[::1])")
def _add_products(into: Floats, first: Floats, second: Floats, tails: Ints, heads: Ints) -> None:
    m, n = len(tails), len(first)
    one, two = np.empty(n), np.empty(n)
    for e in range(m):
        i, j = tails[e], heads[e]
        for k in range(n):
            one[k] = first[i, k] - first[j, k]
            two[k] = second[i, k] - second[j, k]
        for f in range(e + 1):
            value = (one[tails[f]] - one[heads[f]]) * (two[tails[f]] - two[heads[f]])
            into[e, f] += value
            if f != e:
                into[f, e] += value
