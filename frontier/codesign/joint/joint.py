"""The exact method for the joint problem: the two planes apart, each answering the other, until both agree."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ddlopt.frontier.codesign.joint.master import Master
from ddlopt.frontier.codesign.joint.search import Search
from ddlopt.frontier.topology.branch_and_bound.branch_and_bound import BranchAndBound
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.errors import OptionError
from ddlopt.solvers.backends.contracts import Backend
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import CertifiedMethod, Clock
from ddlopt.solvers.topology.link_exchange.link_exchange import LinkExchange


@dataclass(frozen=True)
class Joint(CertifiedMethod, uses=("seed", "start")):
    r"""Logic-based Benders decomposition: strategies under a bound for every topology, topologies for the best of them.

    Let z(x) be the bytes on the busiest link of the best topology for a choice x of strategies, and C(x) its compute
    time. The *master* :class:`~ddlopt.models.codesign.formulations.strategy_bound.StrategyBound` minimises :math:`C(x)
    + \zeta(x)/B` (or the larger of the two) for a lower bound :math:`\zeta \le z`. For its solution the *subproblem*, a
    topology problem, gives a design, hence a plan, and a lower bound :math:`\underline z(x)` on z(x).

    *Cuts.* z is monotone and homogeneous in the bytes to be sent, so what is known of x also holds for all choices that
    send no less (:func:`~ddlopt.models.codesign.formulations.rows.congestion_cuts.add_cuts`).

    *Without cuts*, and so without anything taken for granted, the master is solved to optimality once, at first; up to
    16 servers also with whole ports (:class:`~ddlopt.frontier.codesign.formulations.whole_ports.WholePorts`). Where few
    choices may be better than the best plan, each of them is to be excluded (:func:`.bound_by_classes`).

    *Optimism.* A proof for one topology problem takes far longer than a good design for it. So that the search for
    strategies does not wait for it, the master takes for granted that x is not interesting: it assumes
    :math:`z(x) \ge \hat z` with :math:`C(x) + \hat z/B` just below the best plan, and goes on to other choices. If the
    master's value is then v, every plan takes at least

    .. math:: v - \max_x \max(0, \hat z(x) - \underline z(x)) / B,

    because lowering all right-hand sides of cuts by δ lowers the optimum by at most δ/B. The lower bounds
    :math:`\underline z` of the choices that matter are then raised by the exact methods of the topology family, the one
    that holds the bound down first.

    A *start* may be a plan of a relative: with duplex optics its links go both ways here; where links do not fit, for
    other optics or ports, it gives its strategies.

    *Incumbents* are also improved the other way round: strategies are chosen anew on the links, rings and routes of
    every new incumbent (:class:`~ddlopt.models.codesign.formulations.strategies_on_routes.StrategiesOnRoutes`).

    Designs come from :func:`.deepened`: columns of closed rings made for the groups (:func:`.constructed`), in orders
    that give other traffic short ways (:func:`.arranged`), up to 160 servers link exchange, and up to 16 exact methods.

    *Symmetry.* Where jobs look the same from every server, strategies are also found together with links that do
    (:func:`.symmetric_plan`), which tells apart choices that have the same bound.

    *Work* is counted in nodes of programs, choices looked at and moves, so that the same steps are taken however busy
    the machine is; only a time limit, and proofs of the topology family up to 16 servers, are in seconds.

    Parameters
    ----------
    topology_s : float
        Seconds that the proof of one topology problem may take at a time.
    most_choices : int
        Choices of strategies that get a design.
    backend : Backend
        For the master.

    Notes
    -----
    ``details``: ``masters`` and ``choices`` tried, ``designs`` asked for, seconds by plane, and where the remaining gap
    comes from: ``gap_of_topology``, between the best plan and the bound for its own strategies, and
    ``gap_of_strategies``, between that and the bound for all strategies.

    References
    ----------
    J. Hooker and G. Ottosson, "Logic-based Benders decomposition", Math. Program. 96, 2003. Bounds, cuts and the way
    assumptions are accounted for are ours.
    """

    proves_infeasible: ClassVar[bool] = True

    topology_s: float = 60.0
    most_choices: int = 1000
    backend: Backend = field(default_factory=Highs)

    kernels: ClassVar[tuple[str, ...]] = (
        *BranchAndBound.kernels,
        *LinkExchange.kernels,
        "ddlopt.frontier.topology.lifts.lift_kernels",
        "ddlopt.frontier.codesign.joint.arrange_kernels",
    )

    def __post_init__(self) -> None:
        if not self.topology_s > 0:
            raise OptionError(f"topology_s must be positive, got {self.topology_s}")
        if self.most_choices < 1:
            raise OptionError(f"most_choices must be at least 1, got {self.most_choices}")

    @property
    def name(self) -> str:
        """``joint``."""
        return "joint"

    def find(self, instance: CodesignInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best plan, and the bound."""
        search = Search(instance, Master(instance, self.backend), clock, seed, self.topology_s, self.most_choices)
        search.run(start)
        plan = search.plan()
        return MethodOutput(plan, search.figures(), search.bound_s, versions={"solver": self.backend.name})
