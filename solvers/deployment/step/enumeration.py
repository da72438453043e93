"""All uniform plans, those first whose bound is lowest, until no bound is below the best."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

from ddlopt.models.deployment.step.bounds import step_bound
from ddlopt.models.deployment.step.instance import Dimension, StepInstance, StepPlan
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.ordered_step import order_details
from ddlopt.solvers.deployment.step.costs import Costs, Key, Shape, Stages, keys, limit_bytes, way_at
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

_LOOK = 64
"""Shapes between two looks at the clock."""


@dataclass(frozen=True)
class Space:
    """Plans to look at; what is None is free.

    Parameters
    ----------
    tensor, context, expert, pipeline, data, micro_batch, interleaving, sharding : tuple of int, optional
    options : tuple of str, optional
    order : tuple of str, optional
    recomputed : bool
        Whether some blocks of a chunk may be made again in full.
    all_devices : bool
        Whether plans use every device.
    copies_count : bool
        Whether messages of copies count in the choice.
    """

    tensor: tuple[int, ...] | None = None
    context: tuple[int, ...] | None = None
    expert: tuple[int, ...] | None = None
    pipeline: tuple[int, ...] | None = None
    data: tuple[int, ...] | None = None
    micro_batch: tuple[int, ...] | None = None
    interleaving: tuple[int, ...] | None = None
    sharding: tuple[int, ...] | None = None
    options: tuple[str, ...] | None = None
    order: tuple[Dimension, ...] | None = None
    recomputed: bool = True
    all_devices: bool = False
    copies_count: bool = True

    def has(self, name: str, value: Any) -> bool:
        """Whether plans may have that."""
        allowed = getattr(self, name)
        return allowed is None or value in allowed


class Search:
    """The best plan of a space.

    Parameters
    ----------
    instance : StepInstance
    space : Space
    clock : Clock
    keep : int
        How many of the best plans; no more is looked at than tells these.
    """

    def __init__(self, instance: StepInstance, space: Space, clock: Clock, keep: int = 1) -> None:
        self.instance, self.space, self.clock, self.keep = instance, space, clock, keep
        self.limit = limit_bytes(instance)
        self.kept: list[tuple[float, StepPlan]] = []
        self.leanest: StepPlan | None = None
        self.leanest_bytes = inf
        self.tried = 0
        self._stages: dict[tuple[int, int], Stages] = {}

    @property
    def best(self) -> StepPlan | None:
        """The best plan so far."""
        return self.kept[0][1] if self.kept else None

    @property
    def best_s(self) -> float:
        """Seconds that a plan has to be better than, to be kept."""
        return self.kept[-1][0] if len(self.kept) == self.keep else inf

    def run(self) -> float:
        """Look at all of them; a time below which there is no plan, which is the best's if the time sufficed."""
        nodes = sorted(self._nodes(), key=lambda pair: pair[0])
        for place, (bound_s, costs) in enumerate(nodes):
            if bound_s >= self.best_s:
                break
            if not self._look(costs):
                return min([bound for bound, _ in nodes[place:]] + [seconds for seconds, _ in self.kept])
        return self.kept[0][0] if self.kept else inf

    def _nodes(self) -> Iterator[tuple[float, Costs]]:
        instance, space = self.instance, self.space
        for key in keys(instance):
            tensor, context, expert, micro_batch, _ = key
            degrees = {"tensor": tensor, "context": context, "expert": expert, "micro_batch": micro_batch}
            if not all(space.has(name, value) for name, value in degrees.items()):
                continue
            for name in option_names(instance, key):
                costs = Costs(instance, key, name, self._stages)
                if costs.known and space.has("options", name):
                    work = costs.least_s * tensor * context * instance.global_batch / micro_batch / instance.devices
                    yield work * (1 - ROUNDING), costs

    def _look(self, costs: Costs) -> bool:
        """Shapes of a node; whether the time sufficed."""
        shapes = sorted((costs.bound_s(shape), shape) for shape in self.shapes(costs))
        for number, (bound_s, shape) in enumerate(shapes):
            if number % _LOOK == 0 and self.clock.expired:
                return False
            if bound_s * (1 - ROUNDING) >= self.best_s:
                break
            self._try(costs, shape)
        return True

    def shapes(self, costs: Costs) -> Iterator[Shape]:
        """Stages, chunks and copies, most copies first."""
        instance, space = self.instance, self.space
        samples = instance.global_batch // costs.micro_batch
        copies = [d for d in range(min(samples, instance.devices), 0, -1) if samples % d == 0 and space.has("data", d)]
        share = costs.tensor * costs.context
        for data in copies:
            for pipeline in range(min(instance.size, instance.devices // (share * data)), 0, -1):
                used = share * data * pipeline
                if share * data % costs.expert or not space.has("pipeline", pipeline):
                    continue
                if space.all_devices and used != instance.devices:
                    continue
                most = min(instance.interleaving, instance.size // pipeline) if pipeline > 1 else 1
                for interleaving in range(1, most + 1):
                    whole = interleaving == 1 or samples // data % pipeline == 0
                    if whole and space.has("interleaving", interleaving):
                        yield Shape(pipeline, interleaving, data)

    def _try(self, costs: Costs, shape: Shape) -> None:
        """Every level of sharding, with as few blocks made again as fit."""
        longest = costs.stages(shape.pipeline, shape.interleaving).longest if self._recomputes(costs) else 0
        for sharding in self.instance.sharding:
            if not self.space.has("sharding", sharding):
                continue
            self.tried += 1
            for recomputed in self._that_fit(costs, shape, sharding, longest):
                hidden_s = inf
                for order, network in costs.networks(shape):
                    if self.space.order is not None and order != self.space.order:
                        continue
                    seconds, exposed = costs.time(shape, sharding, recomputed, network)
                    hidden_s = min(hidden_s, seconds - exposed)
                    if not self.space.copies_count:
                        seconds -= exposed
                    if seconds < self.best_s:
                        self._take(seconds, costs.plan(shape, sharding, recomputed, order))
                if costs.orderly and hidden_s >= self.best_s:
                    # More blocks made again take longer, and hide at most all that copies send.
                    break

    def _take(self, seconds: float, plan: StepPlan) -> None:
        self.kept = sorted([*self.kept, (seconds, plan)], key=lambda pair: pair[0])[: self.keep]
        if self.kept[0][1] is plan:
            self.clock.report(seconds, None, plan)

    def _recomputes(self, costs: Costs) -> bool:
        return costs.can_recompute and self.space.recomputed

    def _that_fit(self, costs: Costs, shape: Shape, sharding: int, longest: int) -> Iterator[int]:
        """Numbers of blocks made again that fit, ascending."""

        def memory(number: int) -> float:
            return costs.memory(shape, sharding, number)

        if memory(0) <= self.limit:
            yield 0
        elif longest == 0:
            self._lean(costs, shape, sharding, 0, memory(0))
        first = 1
        if costs.orderly and longest:
            # From one on, memory falls: what runs is the same.
            least = memory(longest)
            if least > self.limit:
                self._lean(costs, shape, sharding, longest, least)
                return
            low, high = 0, longest
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if memory(middle) <= self.limit else (middle, high)
            first = high
        for number in range(first, longest + 1):
            if costs.orderly or memory(number) <= self.limit:
                yield number

    def _lean(self, costs: Costs, shape: Shape, sharding: int, recomputed: int, size: float) -> None:
        if size < self.leanest_bytes:
            self.leanest_bytes = size
            self.leanest = costs.plan(shape, sharding, recomputed, costs.networks(shape)[0][0])


def option_names(instance: StepInstance, key: Key) -> list[str]:
    """Options that the first kind of blocks has at these degrees; others may lack some."""
    way = way_at(instance.blocks[0], key)
    return [] if way is None else [option.name for option in way.options]


@dataclass(frozen=True)
class StepEnumeration(CertifiedMethod, uses=("seed",)):
    r"""The best uniform plan: every one is looked at, or excluded by a bound.

    Degrees of blocks (t, c, e, b, and whether the sequence is shared) come in the order of a bound: no step is shorter
    than :math:`N t c\, \sigma / (b K)`, where :math:`\sigma` is what a micro-batch takes on all blocks with messages
    on the fastest tier. Of their stages, chunks and copies those are looked at for which
    :math:`(n - \lambda) \max_s \sigma_s + \lambda \sigma` is below the best, with
    :math:`\sigma_s` the part of stage s. Then for every level of sharding as few blocks as fit are made again, and
    more only while messages of copies are left that these would hide; orders of dimensions that put as many members of
    each group into units of tiers are one.

    Parameters
    ----------
    orders : int
        For this number of the best plans the order of micro-batches is found, which makes their step exact; see
        :func:`~ddlopt.models.deployment.orders_of_plans.order_instance`. ``details`` then have the best plan's step in
        its order, a bound on it in any order, and the price of the order: how much longer it is than the busiest
        device's work; of several plans also the least step, and the number of its plan.
    weights : float
        Share of a backward pass that such orders have as a pass of its own.

    References
    ----------
    Ours; the time of a step is that of D. Narayanan et al., SC 2021; M. Isaev et al., "Calculon: a methodology and tool
    for high-level co-design of systems and large language models", SC 2023, enumerate a grid like that without bounds.
    """

    orders: int = 0
    weights: float = 0.0

    name: ClassVar[str] = "step-enumeration"
    covers: ClassVar[type[StepInstance]] = StepInstance
    proves_infeasible: ClassVar[bool] = True

    def find(self, instance: StepInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The optimum, or what the time suffices for.

        Raises
        ------
        InfeasibleError
            If nothing fits.
        """
        simple = step_bound(instance)
        search = Search(instance, Space(), clock, max(1, self.orders))
        bound_s = search.run()
        details = {"plans": float(search.tried)}
        if search.best is None:
            if bound_s < inf:
                return MethodOutput(None, details, bound=max(simple, bound_s), message="the time is up")
            raise InfeasibleError(f"'{instance.name}': no plan fits into {room(instance)}{least(search)}")
        if self.orders:
            details |= order_details(instance, [plan for _, plan in search.kept], clock, seed, self.weights)
        return MethodOutput(search.best, details, bound=max(simple, bound_s * (1 - ROUNDING)))


def room(instance: StepInstance) -> str:
    """What devices have."""
    return f"{instance.memory_bytes:.6g} bytes of each of {instance.devices} devices"


def least(search: Search) -> str:
    """The plan that needs the least memory, of those that were looked at."""
    plan = search.leanest
    if plan is None:
        return ""
    return (
        f"; the least memory is {search.leanest_bytes:.4g} bytes, by tensor {plan.tensor}, pipeline {plan.pipeline}, "
        f"data {plan.data}, context {plan.context}, expert {plan.expert}, micro-batches of {plan.micro_batch}, "
        f"sharding {plan.sharding} and {'all' if plan.recomputed else 'no'} blocks recomputed"
    )
