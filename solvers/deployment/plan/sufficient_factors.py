"""Sufficient factors on top of a plan, as TAG decides on them, and together with the plan."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression import SfbInstance, SfbSelection
from ddlopt.models.compression.sfb.instance import Operator, Tensor
from ddlopt.models.deployment import Deployment, DeploymentInstance
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.data_parallel import DataParallel
from ddlopt.solvers.deployment.plan.rater import PlanRater, Rating
from ddlopt.solvers.deployment.plan.search import PlanSearch, Walk
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator
from ddlopt.solvers.deployment.plan.tag import Tag
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.names import spelled

Ints = npt.NDArray[np.int64]


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
                bandwidth_bytes_per_s=_bandwidth(instance, plan.device_groups),
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


def _bandwidth(instance: DeploymentInstance, chosen: tuple[int, ...]) -> float:
    if len(chosen) == 1:
        return instance.device_groups[chosen[0]].bandwidth_bytes_per_s
    between = instance.bandwidth_bytes_per_s[np.ix_(chosen, chosen)]
    return float(between[~np.eye(len(chosen), dtype=bool)].min())


def duplicated_by_cut(instance: DeploymentInstance, deployment: Deployment) -> tuple[int, ...]:
    """Operators to duplicate under a plan, by a minimum cut, as if nothing overlapped."""
    from ddlopt.solvers.compression.sfb.min_cut import MinCut

    selection = MinCut().solve(factor_instance(instance, deployment), Limits()).solution
    return selection.duplicated if isinstance(selection, SfbSelection) else ()


class Joint:
    """Plan and duplicated operators in turn, each by local search while the other is kept, judged by the simulator."""

    def __init__(self, instance: DeploymentInstance, clock: Clock, seed: int) -> None:
        self.instance, self.clock = instance, clock
        self.rng = np.random.default_rng(seed)
        self.rater = PlanRater(instance)
        self.walk = Walk(self.rater, clock, self.rng)

    def improve(self, row: Ints, duplicated: Ints) -> tuple[Rating, Ints, Ints]:
        """Until neither helps; the rating, the row of actions and the duplicated operators."""
        self.rater.duplicated = duplicated
        rating = self.rater.rate(row)
        while not self.clock.expired:
            row, moved = self.walk.descend(row, rating)
            row_rating, duplicated = self._toggle(row, self.rater.duplicated, moved)
            if row_rating >= rating:
                break
            rating = row_rating
        return rating, row, duplicated

    def _toggle(self, row: Ints, duplicated: Ints, rating: Rating) -> tuple[Rating, Ints]:
        """Duplicate, or not, single operators and all of a group, as long as that helps."""
        for place in self.rng.permutation(len(duplicated)):
            members = self.instance.members[self.instance.operators[place].group]
            for together in ([place], list(members)):
                self.rater.duplicated = duplicated.copy()
                self.rater.duplicated[together] = 1 - duplicated[place]
                found = self.rater.rate(row)
                if found < rating:
                    duplicated, rating = self.rater.duplicated, found
            if self.clock.expired:
                break
        self.rater.duplicated = duplicated
        return rating, duplicated


@dataclass(frozen=True)
class WithFactors(Heuristic, uses=("seed", "start")):
    """A search for a plan, then sufficient factors.

    ``cut``: after the search, as in TAG, by a minimum cut of the additive costs that
    :class:`~ddlopt.models.compression.sfb.instance.SfbInstance` has for the plan; kept if the simulator agrees.
    ``joint``: local search on the plan and on the duplicated operators in turn (:class:`Joint`), from that answer and
    from data parallelism with the factors that the minimum cut gives it.

    Parameters
    ----------
    search : {"tag", "plan-search", "data-parallel"}
    how : {"cut", "joint"}
    """

    search: Literal["tag", "plan-search", "data-parallel"] = "tag"
    how: Literal["cut", "joint"] = "cut"

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.deployment.plan.simulator.run",)
    covers = DeploymentInstance

    @property
    def name(self) -> str:
        """``sufficient-factors``, with the search and how they are chosen."""
        return spelled("sufficient-factors", self, "search", "how")

    def answer(self, instance: DeploymentInstance, seed: int, clock: Clock, start: Any) -> Answer[Deployment]:
        """The plan found, with the operators that are duplicated."""
        search = _SEARCHES[self.search]()
        plan, figures = search.answer(instance, seed, clock, start)
        assert isinstance(plan, Deployment)
        simulator = Simulator(instance)
        without = _rating(simulator, plan)
        found, wanted = _with_cut(simulator, plan)
        if self.how == "joint":
            found = min(found, self._jointly(simulator, found[1], clock, seed), key=lambda pair: pair[0])
        clock.report(found[0].time_s)
        told = {"without_s": without.time_s, "duplicated_by_cut": wanted, "duplicated": len(found[1].duplicated)}
        return found[1], dict(figures) | told

    def _jointly(self, simulator: Simulator, plan: Deployment, clock: Clock, seed: int) -> tuple[Rating, Deployment]:
        everywhere, _ = DataParallel().answer(simulator.instance, seed, clock, None)
        joint = Joint(simulator.instance, clock, seed)
        starts = [simulator.choice(each) for each in (plan, _with_cut(simulator, everywhere)[0][1])]
        rating, row, duplicated = min(
            (joint.improve(start.action, start.duplicated) for start in starts), key=lambda found: found[0]
        )
        return rating, simulator.deployment(row, duplicated)


_SEARCHES: dict[str, Callable[[], Heuristic]] = {
    "tag": Tag,
    "plan-search": PlanSearch,
    "data-parallel": DataParallel,
}


def _rating(simulator: Simulator, plan: Deployment) -> Rating:
    choice = simulator.choice(plan)
    outcome = simulator.run(choice.action, choice.duplicated, choice.device)
    return Rating(max(outcome.excess_bytes, 0.0), outcome.time_s)


def _with_cut(simulator: Simulator, plan: Deployment) -> tuple[tuple[Rating, Deployment], int]:
    """The better of a plan with and without what the minimum cut duplicates, and how many operators that are."""
    duplicated = duplicated_by_cut(simulator.instance, plan)
    offers = [plan, plan.model_copy(update={"duplicated": duplicated})]
    return min(((_rating(simulator, each), each) for each in offers), key=lambda pair: pair[0]), len(duplicated)
