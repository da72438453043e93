"""Sufficient factors on top of a plan, as TAG decides on them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ddlopt.models.compression import SfbInstance, SfbSelection
from ddlopt.models.compression.sfb.instance import Operator, Tensor
from ddlopt.models.deployment import Deployment, DeploymentInstance
from ddlopt.models.deployment.plan.simulator.tasks import collective_bandwidth
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.data_parallel import DataParallel
from ddlopt.solvers.deployment.plan.rater import Rating
from ddlopt.solvers.deployment.plan.search import PlanSearch
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator
from ddlopt.solvers.deployment.plan.tag import Tag
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.names import spelled


def factor_instance(instance: DeploymentInstance, deployment: Deployment) -> SfbInstance:
    """What sufficient factors save and cost under a plan, link by link.

    An operator's time is the mean over its devices for the whole batch, its bandwidth the least between any two of its
    device groups, or within the only one. Operators of groups that do not all-reduce cannot be duplicated.
    """
    operators = []
    for place, operator in enumerate(instance.operators):
        plan = deployment.groups[operator.group]
        devices = instance.devices_of(plan.device_groups)
        types = [instance.device_groups[int(instance.device_group_of[device])].type for device in devices]
        replicas = len(devices) if plan.devices is None else 1
        operators.append(
            Operator(
                name=f"{place} {operator.name}",
                time_s=float(np.mean([operator.times_s[kind][0] for kind in types])),
                replicas=replicas,
                bandwidth_bytes_per_s=collective_bandwidth(instance, plan.device_groups),
                gradient_bytes=operator.gradient_bytes,
                can_duplicate=plan.mode == "all_reduce" and replicas > 1,
            )
        )
    tensors = tuple(
        Tensor(producer=tensor.producer, consumers=tensor.consumers, size_bytes=tensor.size_bytes)
        for tensor in instance.tensors
    )
    # The penalty is the microsecond of TAG's released code.
    return SfbInstance(name=instance.name, operators=tuple(operators), tensors=tensors, duplication_penalty_s=1e-6)


def duplicated_by_cut(instance: DeploymentInstance, deployment: Deployment) -> tuple[int, ...]:
    """Operators to duplicate under a plan, by a minimum cut, as if nothing overlapped."""
    from ddlopt.solvers.compression.sfb.min_cut import MinCut

    selection = MinCut().solve(factor_instance(instance, deployment), Limits()).solution
    return selection.duplicated if isinstance(selection, SfbSelection) else ()


@dataclass(frozen=True)
class WithFactors(Heuristic, uses=("seed", "start")):
    """A search for a plan, then sufficient factors.

    As in TAG, by a minimum cut of the additive costs that
    :class:`~ddlopt.models.compression.sfb.instance.SfbInstance` has for the plan; kept if the simulator agrees. A
    search on the plan and the duplicated operators at once is ``plan-search``.

    Parameters
    ----------
    search : {"tag", "plan-search", "data-parallel"}
    """

    search: Literal["tag", "plan-search", "data-parallel"] = "tag"

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.deployment.plan.simulator.run",)
    covers = DeploymentInstance

    @property
    def name(self) -> str:
        """``sufficient-factors``, with the search."""
        return spelled("sufficient-factors", self, "search")

    def answer(self, instance: DeploymentInstance, seed: int, clock: Clock, start: Any) -> Answer[Deployment]:
        """The plan found, with the operators that are duplicated."""
        search = _SEARCHES[self.search]()
        plan, figures = search.answer(instance, seed, clock, start)
        assert isinstance(plan, Deployment)
        simulator, duplicated = Simulator(instance), duplicated_by_cut(instance, plan)
        without = _rating(simulator, plan), plan
        changed = plan.model_copy(update={"duplicated": duplicated})
        rating, found = min(without, (_rating(simulator, changed), changed), key=lambda pair: pair[0])
        clock.report(rating.time_s)
        told = {"duplicated_by_cut": len(duplicated), "duplicated": len(found.duplicated)}
        return found, dict(figures) | {"without_s": without[0].time_s} | told


_SEARCHES: dict[str, Callable[[], Heuristic]] = {
    "tag": Tag,
    "plan-search": PlanSearch,
    "data-parallel": DataParallel,
}


def _rating(simulator: Simulator, plan: Deployment) -> Rating:
    choice = simulator.choice(plan)
    outcome = simulator.run(choice.action, choice.duplicated, choice.device)
    return Rating(max(outcome.excess_bytes, 0.0), outcome.time_s)
