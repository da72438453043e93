"""The file of a proof for uniform plans, read as if an enemy had written it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.certificates.deployment.step.ends import Ends
from ddlopt.certificates.deployment.step.lower import UNIT, Bounds, Shape
from ddlopt.certificates.own import OwnCertificate
from ddlopt.models.deployment.step.evaluate import evaluate_step
from ddlopt.models.deployment.step.instance import StepInstance, StepPlan
from ddlopt.models.deployment.step.places import members
from ddlopt.models.errors import RefutedError


@dataclass(frozen=True)
class StepCertificate(OwnCertificate):
    r"""A proof that no uniform plan takes less than ``claim`` seconds a step.

    There are so few that the checker goes through all of them: degrees of blocks with an option; of these stages,
    chunks and copies; of these blocks that are made again and levels of sharding. Each is excluded with all that it has
    by the first of these that does it (:mod:`~ddlopt.certificates.deployment.step.lower`):

    1. degrees, by :math:`N t c\, \sigma / (b K)`, with :math:`\sigma` the least time of a micro-batch on all blocks
       and messages on the fastest tier;
    2. stages, chunks and copies, by :math:`(n - \lambda) \max_s \sigma_s + \lambda \sigma`;
    3. orders of dimensions and blocks that are made again, by the same with what these take, on the tiers that groups
       span;
    4. levels of sharding, by the memory of the fullest stage, and by the same with what copies send and the optimizer
       takes in the end (:mod:`~ddlopt.certificates.deployment.step.ends`).

    What is left is evaluated in rational numbers. Bounds are whole numbers that are
    rounded down; a plan whose memory is above the limit by no more than the check lets pass counts as one.
    """

    format: ClassVar[str] = "ddlopt step certificate"
    kind: ClassVar[str] = "uniform plans"
    says: ClassVar[str] = "of the instance, by all of its plans in whole numbers"

    @classmethod
    def fault(cls, data: dict[str, Any]) -> str | None:
        """There are no own fields."""
        return None

    def check(self, instance: StepInstance, expired: Callable[[], bool]) -> int:
        """Raise RefutedError if a plan is quicker; how many degrees, shapes and plans were looked at."""
        if self.claim <= 0:
            return 0
        cases = 0
        for degrees in _degrees(instance):
            cases += 1
            bounds = Bounds(instance, degrees, self.claim)
            ends = Ends(bounds)
            if not bounds.known or bounds.all_are_slow():
                continue
            for shape in bounds.shapes():
                cases += 1
                if expired():
                    return cases
                if bounds.is_slow(shape):
                    continue
                for plan in _plans(bounds, ends, shape):
                    cases += 1
                    if expired():
                        return cases
                    self._require_slow(instance, bounds, plan)
        return cases

    def _require_slow(self, instance: StepInstance, bounds: Bounds, plan: StepPlan) -> None:
        found = evaluate_step(instance, plan, exact=True)
        if found.objective is None or found.objective >= self.claim or found.details["memory_bytes"] > bounds.room:
            return
        told = f"{float(found.objective):.12g} s, less than the claim of {float(self.claim):.12g} s"
        raise RefutedError(f"there is a plan of '{instance.name}' that takes {told}")


def _degrees(instance: StepInstance) -> Iterator[StepPlan]:
    """Of blocks: those that a block with experts has, if there is one, with the options of the first block."""
    source = next((block for block in instance.blocks if block.experts), instance.blocks[0])
    for way in source.ways:
        if way.tensor * way.context > instance.devices or instance.global_batch % way.micro_batch:
            continue
        degrees = StepPlan(
            instance=instance.name,
            tensor=way.tensor,
            context=way.context,
            expert=way.expert,
            micro_batch=way.micro_batch,
            sequence_parallel=way.sequence_parallel,
        )
        for name in dict.fromkeys(
            option.name for block in instance.blocks for each in block.ways for option in each.options
        ):
            yield degrees.model_copy(update={"option": name})


def _plans(bounds: Bounds, ends: Ends, shape: Shape) -> Iterator[StepPlan]:
    """What no bound excludes, in orders of dimensions that put unlike members into units of tiers."""
    instance, known = bounds.instance, list[Any]()
    longest = -(-instance.size // (shape.pipeline * shape.interleaving)) if bounds.recomputes else 0
    for order in instance.orders:
        plan = bounds.degrees.model_copy(update={**shape._asdict(), "order": order})
        inside = members(instance, plan)
        if inside in known:
            continue
        known.append(inside)
        for recomputed in range(longest + 1):
            taken = bounds.takes(shape, recomputed, inside)
            if taken >= UNIT:
                continue
            for sharding in instance.sharding:
                if bounds.is_large(shape, recomputed, sharding):
                    continue
                if taken + ends.least(shape, recomputed, sharding, inside) < UNIT:
                    yield plan.model_copy(update={"recomputed": recomputed, "sharding": sharding})
