"""GADGET-style greedy: slot by slot, whatever raises the utility most."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding import SlotEmbedding
from ddlopt.models.scheduling.refusals import bandwidth_refusal, refusal
from ddlopt.models.tolerances import BOUND_MARGIN
from ddlopt.solvers import chain
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.names import spelled
from ddlopt.solvers.scheduling.guarantee import guarantee
from ddlopt.solvers.scheduling.online.engine import Choice, State, simulate
from ddlopt.solvers.scheduling.slot.modelled import Modelled
from ddlopt.solvers.scheduling.slot.oracles import Knapsack, Oracle, Packing, knapsack_is_exact
from ddlopt.solvers.scheduling.slot.worth import SlotGains

OracleName = Literal["auto", "knapsack", "embedding", "packing"]
STEPS = "scheduling/gadget"
"""What packages announce for it: ``slots``, a model in place of its own."""


@dataclass(frozen=True)
class Effort:
    """When the oracle ``auto`` takes a model for every slot."""

    most_places: int = 10_000
    """Jobs times slots times servers: then a slot takes a fraction of a second, and all slots less than a minute."""
    slot_s: float = 5.0
    """Seconds for a slot; models that are not solved by then are seldom solved within a minute."""


_EFFORT = Effort()


@dataclass(frozen=True)
class Gadget(Heuristic, uses=("seed",)):
    r"""Greedy over slots: in each, an *oracle* picks widths, places and rings that raise the utility most.

    .. math::
        \max \sum_i \bigl[u_i(Z_i + \varphi_i(w_i)) - u_i(Z_i)\bigr] - \text{energy}

    over the jobs that are there, knowing nothing of those that will come. With concave utilities and an oracle within a
    factor beta of each slot's best it reaches beta / (1 + beta) of the optimum; see
    :mod:`~ddlopt.solvers.scheduling.guarantee`, and :class:`~ddlopt.solvers.scheduling.slot.worth.SlotGains` for what
    it maximises where that is no sum of utilities.

    Details: ``smallest_beta``, the least ratio of a slot's gain and the oracle's bound on it; ``guaranteed_part``,
    where the assumptions of the guarantee hold.

    Parameters
    ----------
    oracle : {"auto", "knapsack", "embedding", "packing"}
        ``knapsack``: exact, where widths alone decide what fits. ``embedding``: exact, a model of places and rings.
        ``packing``: greedy. ``auto``: the first of them (embedding as long as it is small) that covers the instance.
    slot_limit_s : float
        Most seconds for the model of one slot. Where ``embedding`` has no proof by then, packing is asked as well, and
        the best answer counts. A package may announce a formulation like ``slot-embedding`` that takes its place, as a
        step of kind ``slots``.

    References
    ----------
    M. Yu, Y. Tian, B. Ji, C. Wu, H. Rajan, J. Liu, "GADGET: Online resource optimization for scheduling ring-all-reduce
    learning jobs", INFOCOM 2022 (greedy over time around an embedding of rings; oracles and proofs here are ours).
    """

    oracle: OracleName = "auto"
    slot_limit_s: float = 30.0

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.scheduling.slot.knapsack_kernels",)

    @property
    def name(self) -> str:
        """``gadget``, with its oracle."""
        return spelled("gadget", self, "oracle")

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """What the oracle does not cover."""
        if (reason := refusal(instance)) is not None:
            return reason
        if self.oracle == "knapsack":
            return knapsack_is_exact(instance)
        return bandwidth_refusal(instance) if self.oracle == "embedding" else None

    def answer(self, instance: SchedulingInstance, seed: int, clock: Clock, start: Any) -> Answer[Schedule]:
        """Simulate; figures of the slots."""
        policy = Greedy(instance, self._oracle(instance, seed, clock))
        found = simulate(instance, policy, clock, self.name)
        details: dict[str, Any] = {"slots_simulated": found.slots}
        if policy.bound is not None and found.slots and not found.cut_short and _is_one_slot(instance):
            clock.report(None, policy.bound * (1 + BOUND_MARGIN))
        if instance.contention is None and not found.cut_short:
            details["smallest_beta"] = policy.smallest_beta
            part = guarantee(instance, policy.smallest_beta)
            if part is not None:
                details["guaranteed_part"] = part
        return found.schedule, details

    def certificate(self, instance: SchedulingInstance, solution: Schedule, clock: Clock) -> float | None:
        """Of a single slot, the bound of the oracle."""
        return clock.best_bound(instance.sense)

    def _oracle(self, instance: SchedulingInstance, seed: int, clock: Clock) -> Oracle:
        name = self._chosen(instance)
        if name == "knapsack":
            return Knapsack(instance)
        if name == "packing":
            return Packing(instance)
        limit_s = self.slot_limit_s if self.oracle == name else min(_EFFORT.slot_s, self.slot_limit_s)
        announced = chain.steps(STEPS, "slots")
        formulation = announced[-1].make if announced else SlotEmbedding
        return Modelled(instance, formulation, np.random.default_rng(seed), clock, limit_s)

    def _chosen(self, instance: SchedulingInstance) -> OracleName:
        if self.oracle != "auto":
            return self.oracle
        if knapsack_is_exact(instance) is None:
            return "knapsack"
        work = instance.server_count * len(instance.jobs) * instance.slots
        return "embedding" if work <= _EFFORT.most_places and bandwidth_refusal(instance) is None else "packing"


def _is_one_slot(instance: SchedulingInstance) -> bool:
    """Whether the gains of the only slot are the objective."""
    return instance.slots == 1 and instance.goal.counts_utilities and instance.widths_decide_speed


@dataclass
class Greedy:
    """The policy: gains, oracle, and how good the oracle was."""

    instance: SchedulingInstance
    oracle: Oracle
    smallest_beta: float = 1.0
    bound: float | None = None
    """On the gain of the last slot that it was asked for."""
    gains: SlotGains = field(init=False)

    def __post_init__(self) -> None:
        self.gains = SlotGains(self.instance)

    def choose(self, state: State) -> Choice:
        """Ask the oracle."""
        answer = self.oracle.best(state, self.gains.of(state))
        self.bound = answer.bound
        if answer.bound > 0:
            self.smallest_beta = min(self.smallest_beta, max(0.0, answer.gain / answer.bound))
        return answer.choice
