"""How often workers communicate: the period that reaches a target soonest."""

from functools import cached_property
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from ddlopt.models.contracts import Part, without
from ddlopt.models.gossip.family import GossipAnswer, GossipProblem
from ddlopt.models.gossip.network import Network
from ddlopt.models.gossip.period.stragglers import Stragglers


class Rounds(Part):
    """Matchings of a graph, of which at most one is active in a round of communication.

    Parameters
    ----------
    network : Network
        Workers and links.
    matchings : tuple of tuple of int
        Edges of each; the pairs of a matching average at the same time.
    times_s : tuple of float
        Seconds that a round with each matching takes.
    """

    network: Network
    matchings: tuple[tuple[int, ...], ...] = Field(min_length=1)
    times_s: tuple[float, ...]

    @model_validator(mode="after")
    def _check(self) -> Self:
        edges = self.network.edges
        if len(self.times_s) != len(self.matchings):
            raise ValueError(f"times_s has {len(self.times_s)} entries, but there are {len(self.matchings)} matchings")
        for place, time_s in enumerate(self.times_s):
            if not time_s > 0:
                raise ValueError(f"times_s[{place}] is {time_s:g}; the time of a matching must be above 0")
        for place, matching in enumerate(self.matchings):
            met: dict[int, int] = {}
            for edge in matching:
                if not 0 <= edge < len(edges):
                    raise ValueError(f"matchings[{place}] names edge {edge}, but there are {len(edges)} edges")
                for node in edges[edge]:
                    if met.setdefault(node, edge) != edge:
                        raise ValueError(
                            f"matchings[{place}]: edges {met[node]} and {edge} meet at node {node}; no matching has "
                            "both"
                        )
        left = set(range(len(edges))).difference(*self.matchings)
        if left:
            raise ValueError(f"edge {min(left)} is in no matching; put each edge into one")
        return self


class PeriodInstance(GossipProblem):
    r"""Time until local SGD has a gradient as small as asked for, by a bound on its convergence.

    Each of m workers makes :math:`\tau` steps of size :math:`\eta` on its own, Y seconds each; then the workers mix
    their models in C seconds. *Assumed* is that after K steps the mean squared norm of the gradient is at most

    .. math:: \frac{2\Delta}{\eta K} + \frac{\eta L \sigma^2}{m}
              + \eta^2 L^2 \sigma^2 \left( \varphi\,\tau - 1 \right), \qquad \varphi = \frac{1 + \rho}{1 - \rho},

    with :math:`\rho = \|\mathbb{E}[W^\top W] - J\|_2` for the mixing matrix W (0 for an all-reduce), the first
    objective's distance :math:`\Delta` from its infimum, the Lipschitz constant L of the gradient and the variance
    :math:`\sigma^2` of stochastic gradients. It is the form of the bounds of the references, which hold for steps that
    are small enough; that is not checked here. The last term is :math:`L^2` times twice the workers' mean squared
    distance from their average that noise alone causes: noise of j whole periods ago has been mixed j times, so
    :math:`\eta^2\sigma^2 \bigl(\tau \sum_{j \ge 1} \rho^j + (\tau - 1)/2\bigr)` on average over a period, also where W
    is drawn anew each time. So

    .. math:: T = K \Bigl( Y + \frac{C}{\tau} \Bigr), \qquad K = \frac{2\Delta}{\eta s}, \qquad
              s = \varepsilon - \frac{\eta L \sigma^2}{m} - \eta^2 L^2 \sigma^2 (\varphi\,\tau - 1)

    seconds lead to :math:`\varepsilon`; T is minimised over :math:`\tau \ge 1` and, unless it is given,
    :math:`\eta`. K counts in parts of a step.

    *Mixing* is given (``mixing`` and ``communication_s``), or designed: with ``rounds``, a round has matching j with
    probability :math:`q_j` and none with :math:`1 - \sum_j q_j`; pairs of the matching take their averages, so
    :math:`\rho = 1 - \tfrac12 \lambda_2(\sum_j q_j L_j)` and :math:`C = \sum_j q_j t_j`, and q is chosen, too.

    Parameters
    ----------
    workers : int
        m.
    compute_s : float
        Y.
    target : float
        :math:`\varepsilon`.
    initial_gap, smoothness, variance : float
        Δ, L, σ².
    communication_s : float, optional
        C, where mixing is given.
    mixing : float, optional
        ρ, in 0..1, where it is given.
    rounds : Rounds, optional
        Where it is designed.
    step_size : float, optional
        η, where it is given.
    whole : bool
        Whether the period is a whole number of steps.
    stragglers : Stragglers, optional
        Workers that are not all as fast: a round takes :math:`M(\tau) + C` in place of :math:`Y\tau + C`, with the
        expected maximum M over the workers of the seconds for :math:`\tau` steps. Where steps may be slow the period is
        whole and at most 4096.
    deviation : {"exact", "posynomial"}
        ``posynomial`` leaves the −1 out of the last term: a little more is promised than needed, and the problem is a
        geometric program.

    References
    ----------
    J. Wang, G. Joshi, "Cooperative SGD", Journal of Machine Learning Research 22(213), 2021; J. Wang, G. Joshi,
    "Adaptive communication strategies to achieve the best error-runtime trade-off in local-update SGD", SysML 2019, for
    the time; J. Wang et al., "MATCHA", Indian Control Conference 2019, for random matchings. The problem is ours.
    """

    kind: ClassVar[str] = "period instance"

    problem: Literal["period"] = "period"
    workers: int = Field(ge=1)
    compute_s: float = Field(gt=0)
    target: float = Field(gt=0)
    initial_gap: float = Field(default=1.0, gt=0)
    smoothness: float = Field(default=1.0, gt=0)
    variance: float = Field(default=1.0, gt=0)
    communication_s: float | None = Field(default=None, ge=0)
    mixing: float | None = Field(default=None, ge=0, lt=1)
    rounds: Rounds | None = None
    step_size: float | None = Field(default=None, gt=0)
    whole: bool = False
    stragglers: Stragglers | None = None
    deviation: Literal["exact", "posynomial"] = "exact"

    @model_serializer(mode="wrap")
    def _data(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "stragglers")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("communication_s", "mixing"):
            value = getattr(self, name)
            if self.rounds is None and value is None:
                raise ValueError(f"{name} is missing; give communication_s and mixing, or rounds")
            if self.rounds is not None and value is not None:
                raise ValueError(f"{name} is given beside rounds, which decide it; leave one of them out")
        if self.rounds is not None and self.rounds.network.nodes != self.workers:
            raise ValueError(f"workers is {self.workers}, but the network of rounds has {self.rounds.network.nodes}")
        if self.stragglers is not None and len(self.stragglers.factors) != self.workers:
            given = len(self.stragglers.factors)
            raise ValueError(f"stragglers.factors has {given} entries, but there are {self.workers} workers")
        if self.stragglers is not None and self.stragglers.random and not self.whole:
            raise ValueError("whole is false, but where steps may be slow a period is a whole number; set it to true")
        return self

    @property
    def size(self) -> int:
        """Number of workers."""
        return self.workers

    @cached_property
    def credit(self) -> int:
        """What is taken off φτ in the last term: 1, or 0 where the problem is to be a posynomial one."""
        return 1 if self.deviation == "exact" else 0


class PeriodPlan(GossipAnswer):
    """A period, and what goes with it.

    Parameters
    ----------
    period : float
        τ in steps.
    step_size : float
        η.
    activation : tuple of float, optional
        For instances with rounds: the probability of each matching.
    """

    kind: ClassVar[str] = "period plan"

    problem: Literal["period"] = "period"
    period: float
    step_size: float
    activation: tuple[float, ...] = ()
