"""The dynamic program over ideals: which stages follow, with how few devices, if none may take longer than a time."""

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

from ddlopt.models.deployment.pipeline.bounds import pipeline_bound
from ddlopt.models.deployment.pipeline.instance import PipelineInstance
from ddlopt.models.deployment.pipeline.stages import Stages
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.ordered_step import order_details
from ddlopt.solvers.deployment.pipeline.chains import best_chain
from ddlopt.solvers.deployment.pipeline.ideal_labels import LabelChains
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

MOST_IDEALS = 20_000
"""Beyond, pairs of them take longer than anybody waits."""
_MOST_MEMORY, _PERCENT = 1e6, 1.01
"""How far above its memory, and how finely, the memory of a device is looked for with which a plan fits."""


@dataclass(frozen=True)
class PipelineProgram(CertifiedMethod, uses=("seed",)):
    r"""The best plan, over all ideals.

    With :math:`F_T(I, D)` the fewest devices of stages behind the ideal I that have D replicas in all and take less
    than T each, and for a set S of layers, degrees t and d, and y samples in flight the least time :math:`\tau` of a
    sample over options that fit into the memory,

    .. math::
        F_T(I, D + d) = \min_{J \supset I,\ t,\ d} \{ F_T(J, D) + d t :
        \tau(J \setminus I, t, d, \lceil (D + d) / d \rceil) < T \} .

    A plan that is faster than T exists exactly if :math:`\min_D F_T(\emptyset, D) \le k`; T is found by bisection.
    Piper's recursion has the devices as a state in place of T. Options are a knapsack with a choice for each layer. The
    compiled program asks only whether some choice takes less than T: without any limit of memory, with the leanest
    options, with mixed ones (a linear relaxation), and last by a short search among those that lose little. Stages of a
    chain that it finds are held to their exact times, in whole numbers, and barred where these are not below T.

    Parameters
    ----------
    most_ideals : int
        It refuses instances with more.
    line : bool
        Stages are cuts of one topological order, which is then its scope.
    order : bool
        The order of the plan's micro-batches is found as well, which makes its step exact; see
        :func:`~ddlopt.models.deployment.orders_of_plans.order_instance`. ``details`` then have the step, a bound on it
        in any order, and the price of the order: how much longer it is than N times the slowest stage's sample.
    weights : float
        Share of a backward pass that such an order has as a pass of its own.

    References
    ----------
    J. Tarnawski et al., "Piper: Multidimensional planner for DNN parallelization", NeurIPS 2021; the search over T and
    the exact knapsack are ours.
    """

    most_ideals: int = MOST_IDEALS
    line: bool = False
    order: bool = False
    weights: float = 0.0

    name: ClassVar[str] = "pipeline-ideals"
    covers: ClassVar[type[PipelineInstance]] = PipelineInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.deployment.pipeline.kernels",)
    proves_infeasible: ClassVar[bool] = True

    def refuses(self, instance: Any) -> str | None:
        """Too many ideals."""
        if not self.line and Stages(instance).ideals(self.most_ideals) is None:
            return f"the graph has more than {self.most_ideals} ideals; use near-ideals"
        return None

    def find(self, instance: PipelineInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The optimum, or what the time suffices for.

        Raises
        ------
        InfeasibleError
            If nothing fits: every plan is a chain of ideals, one for each stage, and none of these, with the option of
            least memory in each layer, keeps within the devices. With ``line`` only if the graph has one order.
        """
        stages = Stages(instance)
        every = None if self.line else stages.ideals(self.most_ideals)
        ideals = stages.prefixes() if every is None else every
        chains = LabelChains(stages, ideals, clock)
        found = best_chain(chains, pipeline_bound(instance), clock, every=not self.line)
        if found.chain is None:
            if found.bound_s < inf:
                return MethodOutput(None, bound=None if self.line else found.bound_s, message="the time is up")
            have = f"{instance.memory_bytes:.6g} bytes of each of {instance.devices} devices"
            told = f"'{instance.name}': no plan fits into {have}"
            if self.line and stages.ideals(instance.size + 1) is None:
                raise NoSolutionError(f"{told} that cuts one topological order")
            raise InfeasibleError(f"{told}{least_memory(instance, ideals, clock)}")
        details = {"ideals": float(len(ideals)), "questions": float(found.tried)}
        bound_s, plan = found.bound_s * (1 - ROUNDING), chains.plan(found.chain)
        if self.order:
            details |= order_details(instance, [plan], clock, seed, self.weights)
        if self.line:
            return MethodOutput(plan, details, scope="cuts of one order", scope_bound=bound_s)
        return MethodOutput(plan, details, bound=bound_s)


def least_memory(instance: PipelineInstance, ideals: tuple[int, ...], clock: Clock) -> str:
    """What would make it fit: the least memory of a device, by bisection to a percent."""
    low, high = instance.memory_bytes, 2 * instance.memory_bytes

    def fits(memory_bytes: float) -> bool:
        stages = Stages(instance.changed(memory_bytes=memory_bytes))
        return LabelChains(stages, ideals, clock).within(inf) is not None

    try:
        while not fits(high):
            low, high = high, 2 * high
            if high > _MOST_MEMORY * instance.memory_bytes:
                return "; more memory does not help, there are too few devices"
        while high > _PERCENT * low:
            middle = (low * high) ** 0.5
            low, high = (low, middle) if fits(middle) else (middle, high)
    except NoSolutionError:
        return ""
    return f"; the least memory is {high:.4g} bytes, with all that saves memory"
