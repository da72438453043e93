"""The dynamic program over ideals: which stages follow, with how few devices, if none may take longer than a time."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ddlopt.models.deployment.pipeline.bounds import pipeline_bound
from ddlopt.models.deployment.pipeline.instance import PipelineInstance, PipelinePlan
from ddlopt.models.deployment.pipeline.stages import Stages
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.ordered_step import order_details
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

MOST_IDEALS = 2000
"""Beyond, pairs of them take longer than anybody waits."""
_NEAR = 1e-6
"""How near the limits of the bisection come before only what is strictly better is asked for."""
_FIRST_STEP = 1.1
"""By how much the first time tried is above the bound; the steps grow from there."""


_MOST_STEPS = 12
"""Steps that grow, to thousands of times the bound, before the question is whether anything fits at all."""
_MOST_MEMORY, _PERCENT = 1e6, 1.01
"""How far above its memory, and how finely, the memory of a device is looked for with which a plan fits."""


class Piece(NamedTuple):
    """A stage of a chain: its layers, its degrees, and how many samples are in flight on a replica."""

    layers: int
    tensor: int
    replicas: int
    flying: int


class Chains:
    """Sequences of stages between ideals.

    Parameters
    ----------
    stages : Stages
    ideals : tuple of int
        From the empty one to the whole, the smaller ones first.
    clock : Clock
    loads_grow : bool
        Whether more samples in flight never make a stage faster, so that how many may be is found by bisection.
    """

    def __init__(self, stages: Stages, ideals: tuple[int, ...], clock: Clock, loads_grow: bool = True) -> None:
        self.stages, self.ideals, self.clock, self.loads_grow = stages, ideals, clock, loads_grow
        instance = stages.instance
        self.most = min(instance.devices, instance.micro_batches)
        self.degrees = [(t, d) for t in instance.tensors for d in instance.replicas if t * d <= instance.devices]
        place = {ideal: number for number, ideal in enumerate(ideals)}
        self.inside = [[place[other] for other in ideals if other != ideal and other & ~ideal == 0] for ideal in ideals]
        work = [
            min(menu.tensor * option.time_s for menu in layer.menus for option in menu.options)
            for layer in instance.layers
        ]
        self.work_s = [sum(work[layer] for layer in range(instance.size) if ideal >> layer & 1) for ideal in ideals]

    def within(self, limit_s: float) -> list[Piece] | None:
        """A chain in which every stage takes less than ``limit_s``; None if there is none.

        For every ideal and every number of replicas that stages behind it have, the fewest devices of these stages.

        Raises
        ------
        NoSolutionError
            If the time is up.
        """
        devices, most, ideals = self.stages.instance.devices, self.most, self.ideals
        beyond = devices + 1
        need = np.full((len(ideals), most + 1), beyond, dtype=np.int64)
        need[-1, 0] = 0
        came = np.full((len(ideals), most + 1), -1, dtype=np.int64)
        steps: list[tuple[int, Piece]] = []
        # What is left for the stages before an ideal.
        spare = [devices - int(np.ceil(work / limit_s * (1 - ROUNDING))) for work in self.work_s]
        for behind in range(len(ideals) - 1, 0, -1):
            if self.clock.expired:
                raise NoSolutionError("the time is up")
            known = need[behind]
            if known.min() > devices:
                continue
            largest = int(np.flatnonzero(known <= devices)[-1])
            for ahead in self.inside[behind]:
                if spare[ahead] <= 0 and ahead:
                    continue
                layers = ideals[behind] & ~ideals[ahead]
                for tensor, replicas in self.degrees:
                    used = tensor * replicas
                    if used > spare[ahead] or self.stages.fastest_s(layers, tensor, replicas) >= limit_s:
                        continue
                    for least, top in self._counts(Piece(layers, tensor, replicas, 0), limit_s, largest + replicas):
                        self._step(need, came, steps, behind, ahead, Piece(layers, tensor, replicas, least), top, spare)
        if need[0].min() > devices:
            return None
        return self._read(need, came, steps)

    def _counts(self, piece: Piece, limit_s: float, most: int) -> list[tuple[int, int]]:
        """Ranges of samples in flight, first and last, with which the stage takes less than the limit."""
        load = self.stages.load_s
        most_flying = -(-min(most, self.most) // piece.replicas)
        fits: Callable[[int], bool] = lambda flying: load(*piece[:3], flying) < limit_s  # noqa: E731
        if not self.loads_grow:
            return [(flying, flying) for flying in range(1, most_flying + 1) if fits(flying)]
        if not fits(1):
            return []
        low, high = 1, most_flying + 1
        if high > 2 and fits(most_flying):
            low = most_flying
        while high - low > 1 and low < most_flying:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return [(1, low)]

    def _step(
        self,
        need: Any,
        came: Any,
        steps: list[tuple[int, Piece]],
        behind: int,
        ahead: int,
        piece: Piece,
        top: int,
        spare: list[int],
    ) -> None:
        """Put a stage in front of what is known behind it."""
        d = piece.replicas
        first = max(d, (piece.flying - 1) * d + 1)
        last = min(self.most, top * d)
        if first > last:
            return
        fewest = need[behind, first - d : last + 1 - d] + d * piece.tensor
        target = need[ahead, first : last + 1]
        better = (fewest < target) & (fewest <= spare[ahead])
        if better.any():
            target[better] = fewest[better]
            came[ahead, first : last + 1][better] = len(steps)
            steps.append((behind, piece))

    def _read(self, need: Any, came: Any, steps: list[tuple[int, Piece]]) -> list[Piece]:
        place, total = 0, int(np.argmin(need[0]))
        found = []
        while place != len(self.ideals) - 1:
            place_behind, piece = steps[came[place, total]]
            found.append(piece._replace(flying=-(-total // piece.replicas)))
            place, total = place_behind, total - piece.replicas
        return found

    def load_s(self, chain: list[Piece]) -> float:
        """Of the slowest stage."""
        return max(self.stages.load_s(*piece) for piece in chain)

    def plan(self, chain: list[Piece]) -> PipelinePlan:
        """The plan with the fastest options."""
        return PipelinePlan(
            instance=self.stages.instance.name, stages=tuple(self.stages.stage(*piece) for piece in chain)
        )


class Found(NamedTuple):
    """The best chain, and the time below which there is none."""

    chain: list[Piece] | None
    bound_s: float
    tried: int


def best_chain(chains: Chains, low_s: float, clock: Clock) -> Found:
    """The chain with the fastest slowest stage, by bisection; what the clock lets it find.

    Each question that has no answer raises the bound, each answer is the next time to beat; in the end only what is
    strictly better is asked for.
    """
    best, high_s, step, tried = None, inf, _FIRST_STEP, 0
    try:
        while low_s < high_s:
            near = high_s - low_s <= _NEAR * high_s
            middle_s = (low_s + high_s) / 2
            limit_s = high_s if near else min(middle_s, low_s * step) if low_s else middle_s
            if best is None and tried > _MOST_STEPS:
                limit_s = inf
            tried += 1
            chain = chains.within(limit_s)
            if chain is not None:
                best, high_s = chain, chains.load_s(chain)
                clock.report(high_s, low_s)
            elif limit_s == inf:
                return Found(None, inf, tried)
            else:
                low_s, step = limit_s, 1 + 2 * (step - 1)
    except NoSolutionError:
        pass
    return Found(best, low_s, tried)


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
    Piper's recursion has the devices as a state in place of T. Options are a knapsack with a choice for each layer,
    solved exactly by lists of memory and time that nothing beats; layers that are alike share them, and all is counted
    in whole numbers. What takes longer than T without any limit of memory, or leaves fewer devices than the work that
    is left needs in time T, is passed over.

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
    proves_infeasible: ClassVar[bool] = True

    def refuses(self, instance: Any) -> str | None:
        """Other problems, too many ideals."""
        reason = super().refuses(instance)
        if reason is None and not self.line and Stages(instance).ideals(self.most_ideals) is None:
            return f"the graph has more than {self.most_ideals} ideals; use pipeline-line"
        return reason

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
        found = best_chain(chains := Chains(stages, ideals, clock), pipeline_bound(instance), clock)
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
        return Chains(stages, ideals, clock).within(inf) is not None

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
