r"""Inequalities between links and congestion that arc lengths and neighbourhoods prove.

Let :math:`n_a` be the number of links on arc a (an ordered pair of servers) and z the congestion of a design. For arc
lengths :math:`\ell \ge 0` a byte from s to t uses up at least the distance :math:`\delta_\ell(s, t)` in the *complete*
network (the length :math:`\ell_{st}` itself without host forwarding), and no link carries more than z:

.. math:: z \sum_a \ell_a n_a \ge \sum_a \ell_a\, load_a \ge D_\ell = \sum_{st} T_{st}\, \delta_\ell(s, t) .

If links could be laid in parts, routing would imply all of these *metric inequalities*, whose dual they are. They gain
by knowing that links are whole, in three ways.

**Rounded** (:func:`rounded_cut`, :func:`least_length_cut`). With whole lengths, :math:`y = \sum_a \ell_a n_a` is a
whole number, at least 1 if :math:`D_\ell > 0`. A convex function is at no whole number below its chord from k to k + 1:

.. math:: z \ge \frac{D_\ell}{y} \quad\Longrightarrow\quad z \ge D_\ell\, \frac{2 k + 1 - y}{k (k + 1)} .

Designs with :math:`z \le \bar z` have :math:`y \ge \lceil D_\ell / \bar z \rceil`. Lengths of 1 on the arcs that leave
a set of servers, and 0 elsewhere, make cut sets of both.

**Split.** For whole lengths every design has :math:`y \le k` or :math:`y \ge k + 1`. If linear programs prove
:math:`z - w y \ge b_0` in the one case and :math:`\ge b_1` in the other, then :math:`z \ge \min(b_0, b_1) + w y`. They
may know more than the metric inequality: that distances grow with every link that is absent.

**Neighbourhood.** The links out of server s are one of finitely many sets N (:func:`neighbourhoods`). If :math:`b_N` is
a lower bound on z for all designs in which they are N, then for all weights w

.. math:: z \ge \min_N \Bigl( b_N - \sum_{j \in N} w_j \Bigr) + \sum_j w_j n_{sj} ,

and likewise for the links into s. Sets with :math:`b_N > \bar z` need not be counted where only designs with
:math:`z \le \bar z` matter.

References
----------
M. Iri, "On an extension of the maximum-flow minimum-cut theorem to multicommodity flows", J. Oper. Res. Soc. Japan
13(3), 1971; K. Onaga, O. Kakusho, "On feasibility conditions of multicommodity flows in networks", IEEE Trans. Circuit
Theory 18(4), 1971 (metric inequalities). P. Avella, S. Mattia, A. Sassano, "Metric inequalities and the network loading
problem", Discrete Optim. 4(1), 2007 (rounding them). E. Balas, "Disjunctive programming", Ann. Discrete Math. 5, 1979.
The chord and the neighbourhoods are ours.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.models.topology.formulations.rows.link_cut import Arc, Kind, LinkCut
from ddlopt.models.topology.instance import TopologyInstance

_ROOM = Fraction(1, 10**9)
"""An achievable congestion may be exceeded by this part: figures that come from solvers are right to a tolerance."""


def demanded_length(instance: TopologyInstance, lengths: npt.NDArray[np.int64]) -> Fraction:
    """Bytes times distance in the complete network, exactly; ``lengths`` is (n, n), whole and not negative.

    All-reduce groups are left out, which can only make it less.
    """
    if lengths.shape != (instance.servers,) * 2 or not np.issubdtype(lengths.dtype, np.integer) or lengths.min() < 0:
        raise ValueError(f"lengths must be an ({instance.servers}, {instance.servers}) array of whole numbers >= 0")
    distance = lengths.copy()
    np.fill_diagonal(distance, 0)
    if instance.host_forwarding:
        for between in range(instance.servers):
            distance = np.minimum(distance, distance[:, [between]] + distance[[between], :])
    pairs = np.argwhere(instance.traffic_bytes > 0).tolist()
    return sum((Fraction(float(instance.traffic_bytes[s, t])) * int(distance[s, t]) for s, t in pairs), Fraction(0))


def rounded_cut(instance: TopologyInstance, lengths: npt.NDArray[np.int64], k: int) -> LinkCut | None:
    """The chord of the metric inequality of whole ``lengths`` from k >= 1 to k + 1; None if it says nothing.

    Its figures are rounded such that it is weaker, if anything.
    """
    demanded = demanded_length(instance, lengths)
    if demanded == 0:
        return None
    slope = -demanded / (k * (k + 1))
    weights = tuple((arc, _at_most(slope * length)) for arc, length in _nonzero(lengths))
    return LinkCut("rounded", True, _at_most(demanded * Fraction(2 * k + 1, k * (k + 1))), weights)


def least_length_cut(
    instance: TopologyInstance, lengths: npt.NDArray[np.int64], achievable_bytes: float
) -> LinkCut | None:
    """How much length designs of at most ``achievable_bytes`` need at least; None if that is nothing."""
    least = math.ceil(demanded_length(instance, lengths) / (Fraction(achievable_bytes) * (1 + _ROOM)))
    if least == 0:
        return None
    return LinkCut("rounded", False, float(least), tuple((arc, -float(x)) for arc, x in _nonzero(lengths)))


def disjunctive_cut(kind: Kind, weights: Mapping[Arc, float], bounds: list[float]) -> LinkCut:
    """The cut z >= b + Σ w n of lower bounds on z - Σ w n, of which at least one holds for each design."""
    return LinkCut(kind, True, min(bounds), tuple((arc, weight) for arc, weight in sorted(weights.items()) if weight))


def neighbourhoods(instance: TopologyInstance, server: int) -> Iterator[tuple[int, ...]]:
    """All choices of the at most d other ends of a server's links; one that appears twice has two links."""
    others = [j for j in range(instance.servers) if j != server]
    choose = itertools.combinations_with_replacement if instance.parallel_links else itertools.combinations
    for size in range(instance.degree + 1):
        yield from choose(others, size)


def cut_set_lengths(inside: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """(n, n) lengths of 1 on the arcs that leave a set of servers, given as an (n,) mask, and 0 elsewhere."""
    return (inside[:, None] & ~inside[None, :]).astype(np.int64)


def _nonzero(lengths: npt.NDArray[np.int64]) -> list[tuple[Arc, int]]:
    return [((int(i), int(j)), int(lengths[i, j])) for i, j in np.argwhere(lengths) if i != j]


def _at_most(value: Fraction) -> float:
    """The largest double that is not above ``value``."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)
