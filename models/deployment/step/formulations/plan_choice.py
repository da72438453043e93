"""A training step as a choice among all plans that fit."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.contracts import Evaluation, Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.deployment.step.evaluate import evaluate_step
from ddlopt.models.deployment.step.instance import StepInstance, StepPlan, Way
from ddlopt.models.errors import InfeasibleError, SolverError
from ddlopt.models.linear import linear
from ddlopt.models.remembered import remembered
from ddlopt.models.tolerances import INTEGRALITY_TOL
from ddlopt.models.units import unit_of

_MOST_PLANS = 20_000
"""More take longer to be evaluated one by one than all of them by bounds."""


@dataclass(frozen=True)
class PlanChoice(FormulationBase):
    r"""One of the plans that fit, for hosts that weigh time against devices or memory.

    With :math:`x_k` for plan k, its step :math:`T_k`, its devices :math:`K_k` and the memory :math:`M_k` of its fullest
    stage,

    .. math::
        \min\ & \textstyle\sum_k T_k x_k \\
        & \textstyle\sum_k x_k = 1 \\
        & x_k \in \{0, 1\} .

    Ports
    -----
    ``plan[k]``
        x: 1 if it is plan k of :meth:`plans`.
    ``step``
        Time, in units of :meth:`unit_s`.
    ``devices``
        How many the plan uses.
    ``memory``
        Of its fullest stage, as a part of a device's.
    ``objective``
        The step, to be minimised.

    References
    ----------
    Ours.
    """

    covers: ClassVar[type[Instance]] = StepInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: Any) -> str | None:
        """Too many plans."""
        for number, _ in enumerate(_every(instance)):
            if number >= _MOST_PLANS:
                return f"there are more than {_MOST_PLANS} plans; use step-enumeration"
        return None

    def unit_s(self, instance: StepInstance) -> float:
        """In which times are measured: about a thousandth of what devices compute, each part in its fastest way.

        Where they compute nothing, of the fastest plan.
        """
        parts = (instance.embedding, *instance.blocks, instance.head)
        work = sum(
            part.count
            * min(
                (option.forward_s + option.backward_s) * way.tensor * way.context / way.micro_batch
                for way in part.ways
                for option in way.options
            )
            for part in parts
        )
        return unit_of(work * instance.global_batch / instance.devices or self.achievable_s(instance) or 0.0)

    def plans(self, instance: StepInstance) -> list[StepPlan]:
        """Plans that fit, in the order of their indices."""
        return [plan for plan, _ in _that_fit(instance)]

    def achievable_s(self, instance: StepInstance) -> float | None:
        """Time of the fastest plan; None if none fits."""
        return min((float(found.objective or 0) for _, found in _that_fit(instance)), default=None)

    def build(self, block: pyo.Block, instance: StepInstance) -> None:
        """Fill ``block``.

        Raises
        ------
        InfeasibleError
            If no plan fits.
        """
        unit_s, fitting = self.unit_s(instance), _that_fit(instance)
        if not fitting:
            raise InfeasibleError(f"'{instance.name}': no plan fits")
        plans, found = zip(*fitting, strict=True)
        block.PLANS = pyo.RangeSet(0, len(plans) - 1, doc="plans that fit")
        block.plan = pyo.Var(block.PLANS, domain=pyo.Binary, doc="1 if it is this one")
        chosen = list(block.plan.values())
        block.one_plan_is_chosen = pyo.Constraint(expr=(1.0, linear([(1.0, each) for each in chosen]), 1.0))

        def total(values: list[float]) -> Any:
            return linear([(value, each) for value, each in zip(values, chosen, strict=True)])

        block.step = pyo.Expression(
            expr=total([float(each.objective or 0) / unit_s for each in found]), doc="time of a step, in units"
        )
        block.devices = pyo.Expression(expr=total([float(plan.devices) for plan in plans]), doc="devices that it uses")
        memory = [float(each.details["memory_bytes"]) / instance.memory_bytes for each in found]
        block.memory = pyo.Expression(expr=total(memory), doc="memory of its fullest stage, as a part")
        block.objective = pyo.Expression(expr=block.step.expr)

    def start(self, block: pyo.Block, instance: StepInstance, solution: StepPlan) -> None:
        """Set ``plan``; the rest follows."""
        told = _degrees(solution)
        for number, plan in enumerate(self.plans(instance)):
            block.plan[number].set_value(int(_degrees(plan) == told))

    def read(self, block: pyo.Block, instance: StepInstance) -> StepPlan:
        """The plan that is chosen.

        Raises
        ------
        SolverError
            If none is, or some in part.
        """
        plans = self.plans(instance)
        values = [pyo.value(block.plan[number]) for number in range(len(plans))]
        for number, value in enumerate(values):
            if abs(value - round(value)) > INTEGRALITY_TOL:
                raise SolverError(f"plan[{number}] is {value:.6g}, not a whole number")
        chosen = [plan for plan, value in zip(plans, values, strict=True) if round(value)]
        if len(chosen) != 1:
            raise SolverError(f"{len(chosen)} plans are chosen, not one")
        return chosen[0]

    def objective_value(self, instance: StepInstance, value: float) -> float:
        """Seconds."""
        return value * self.unit_s(instance)


def _degrees(plan: StepPlan) -> dict[str, Any]:
    return plan.model_dump(exclude={"instance", "instance_digest"})


@remembered
def _that_fit(instance: StepInstance) -> list[tuple[StepPlan, Evaluation]]:
    """Plans that fit, with what the check says of them: building, starts and reading ask for the same."""
    checked = ((plan, evaluate_step(instance, plan)) for plan in _every(instance))
    return [(plan, found) for plan, found in checked if found.feasible]


def _every(instance: StepInstance) -> Iterator[StepPlan]:
    """Plans whose degrees go together, whether they fit or not."""
    source = next((block for block in instance.blocks if block.experts), instance.blocks[0])
    for way in source.ways:
        if instance.global_batch % way.micro_batch:
            continue
        samples, share = instance.global_batch // way.micro_batch, way.tensor * way.context
        copies = [d for d in range(1, instance.devices + 1) if samples % d == 0]
        for data, stages in product(copies, range(1, instance.size + 1)):
            if share * data * stages > instance.devices:
                continue
            for chunks in range(1, min(instance.interleaving, instance.size // stages) + 1):
                yield from _with(instance, way, stages, chunks, data)


def _with(instance: StepInstance, way: Way, stages: int, chunks: int, data: int) -> Iterator[StepPlan]:
    """All options, levels and orders."""
    for place, option in enumerate(way.options):
        most = -(-instance.size // (stages * chunks)) if place == 0 else 0
        for number, level, order in product(range(most + 1), instance.sharding, instance.orders):
            yield StepPlan(
                instance=instance.name,
                tensor=way.tensor,
                context=way.context,
                expert=way.expert,
                data=data,
                pipeline=stages,
                interleaving=chunks,
                micro_batch=way.micro_batch,
                sharding=level,
                sequence_parallel=way.sequence_parallel,
                option=option.name,
                recomputed=number,
                order=order,
            )
