r"""What no set of matchings is beyond where a single one is active in a round.

Let :math:`q_e` be the probability of the matching that edge e is in. At most one edge of a node is active at a time, so

.. math::

    \sum_{e \ni i} q_e \le 1, \qquad \sum_{e \ni i} t_e q_e \le B, \qquad
    \sum_e q_e \le \lfloor n/2 \rfloor \min(1, B / t_{\min}), \qquad 0 \le q_e \le c_e

with the budgets c of edges: fractional matchings. The factor is :math:`1 - \lambda_2(L(q)) / 2` at least, and λ₂ over
these q is a convex problem that knows nothing of the split. Ours.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from ddlopt.models.gossip.matchings.instance import MatchingsInstance
from ddlopt.models.gossip.matchings.second_moments import unit_positive
from ddlopt.models.gossip.spectral.laplacians import Floats, on_edges


@dataclass(frozen=True)
class FractionalMatchings:
    """The inequalities of an instance, and the bound that any matrix and any prices give.

    Parameters
    ----------
    instance : MatchingsInstance
    """

    instance: MatchingsInstance

    @cached_property
    def most(self) -> Floats:
        """(m,) c."""
        return np.array(self.instance.edge_budgets or (1.0,) * len(self.instance.network.edges))

    @cached_property
    def rows(self) -> sparse.csr_array:
        """(2n + 1, m) left sides of the other inequalities, with 1 as the right side of each."""
        instance = self.instance
        times, touching = np.array(instance.edge_times), abs(instance.network.incidence)
        half = (instance.size // 2) * min(1.0, instance.budget / float(times.min()))
        timed = touching @ sparse.diags_array(times / instance.budget)
        return sparse.vstack([touching, timed, sparse.csr_array(np.full((1, len(times)), 1.0 / half))], format="csr")

    def bound(self, matrix: Floats, prices: Floats) -> float:
        r"""At most the factor of any plan: :math:`1 - (\sum_k \pi_k + \sum_e c_e (z_e - (D^\top \pi)_e)^+) / 2`.

        That is the dual of a linear program with the objective :math:`z_e = \langle X, a_e a_e^\top \rangle`, where X
        is the matrix, made positive semidefinite with trace 1 and without a share of the all-one vector.

        Parameters
        ----------
        matrix : (n, n) array
        prices : (2n + 1,) array
            π at the scale of the matrix.
        """
        positive, scale = unit_positive(matrix)
        kept = np.maximum(0.0, prices) / scale
        left = np.maximum(0.0, on_edges(positive, self.instance.network.ends) - self.rows.T @ kept)
        return float(1.0 - (kept.sum() + self.most @ left) / 2.0)
