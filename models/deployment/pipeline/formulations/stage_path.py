"""A plan for a pipeline as a path of stages."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.deployment.pipeline.bounds import pipeline_bound
from ddlopt.models.deployment.pipeline.instance import PipelineInstance, PipelinePlan
from ddlopt.models.deployment.pipeline.stages import Stages, members
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import linear, significant
from ddlopt.models.tolerances import INTEGRALITY_TOL
from ddlopt.models.units import unit_of

_MOST_IDEALS, _MOST_COLUMNS = 200, 30_000
"""More make a model that takes longer to build than the dynamic program to run."""
Column = tuple[int, int, int, int, int]
"""The ideals before and behind a stage, its degrees t and d, and the replicas of this stage and all behind it."""


@dataclass(frozen=True)
class StagePath(FormulationBase):
    r"""Stages as columns, which make a path from the whole network to nothing.

    A state is an ideal I and the replicas D of all stages behind it. A column :math:`c = (I, J, t, d, D)` is the stage
    :math:`J \setminus I` with degrees t and d, from the state :math:`(J, D - d)` to :math:`(I, D)`; its time
    :math:`\tau_c` of a sample is the least over options that fit with :math:`\lceil D / d \rceil` samples in flight.

    .. math::
        \min\ & z \\
        & \textstyle\sum_{c \text{ from } s} x_c - \sum_{c \text{ to } s} x_c = [s = (V, 0)]
          && \text{for every state } s = (I, D),\ I \ne \emptyset \\
        & \textstyle\sum_c d_c t_c\, x_c \le k \\
        & \textstyle\sum_{c :\, v \in c} \tau_c\, x_c \le z && \text{for every layer } v \\
        & x_c \in \{0, 1\} .

    Every layer is in one stage of a path, so its row bounds that stage's time.

    Ports
    -----
    ``stage[i, j, t, d, n]``
        x: 1 if the plan has the stage; ideals are numbers whose bits are layers.
    ``slowest``
        z, in units of :meth:`unit_s`.
    ``objective``
        The same, to be minimised.

    References
    ----------
    Ours; the states are those of J. Tarnawski et al., "Piper: Multidimensional planner for DNN parallelization",
    NeurIPS 2021.
    """

    covers: ClassVar[type[Instance]] = PipelineInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: Any) -> str | None:
        """Too many columns."""
        ideals = Stages(instance).ideals(_MOST_IDEALS)
        most = min(instance.devices, instance.micro_batches)
        pairs = len(ideals) ** 2 // 2 if ideals else inf
        if pairs * len(instance.tensors) * len(instance.replicas) * most > 40 * _MOST_COLUMNS:
            return f"it would have more than {_MOST_COLUMNS} columns; use pipeline-ideals"
        return None

    def unit_s(self, instance: PipelineInstance) -> float:
        """In which times are measured: about a thousandth of what devices work at least, or else of some plan."""
        return unit_of(pipeline_bound(instance) or self.achievable_s(instance) or 0.0)

    def achievable_s(self, instance: PipelineInstance) -> float | None:
        """What some plan takes at most, if there is one: of one stage, else as long as the slowest stage of all.

        None if no stage fits.
        """
        whole = (1 << instance.size) - 1
        times = list(_columns(instance))
        alone = [seconds for (i, j, *_), seconds in times if (i, j) == (0, whole)]
        return min(alone) if alone else max((seconds for _, seconds in times), default=None)

    def build(self, block: pyo.Block, instance: PipelineInstance) -> None:
        """Fill ``block``."""
        unit_s = self.unit_s(instance)
        times = {column: seconds / unit_s for column, seconds in _columns(instance)}
        whole = (1 << instance.size) - 1
        block.STAGES = pyo.Set(initialize=list(times), dimen=5, doc="ideals, degrees and replicas")
        block.LAYERS = pyo.RangeSet(0, instance.size - 1)
        block.stage = pyo.Var(block.STAGES, domain=pyo.Binary, doc="1 if the plan has the stage")
        block.slowest = pyo.Var(bounds=(0, None), doc="time of a sample in the slowest stage, in units")
        flows: dict[tuple[int, int], list[tuple[float, Any]]] = {(whole, 0): []}
        for column, variable in block.stage.items():
            i, j, _, d, n = column
            flows.setdefault((j, n - d), []).append((1.0, variable))
            flows.setdefault((i, n), []).append((-1.0, variable))
        states = [state for state in flows if state[0]]
        block.STATES = pyo.Set(initialize=states, dimen=2, doc="ideal, and replicas behind it")

        @block.Constraint(block.STATES, doc="stages follow each other")
        def stages_make_a_path(b: Any, i: int, n: int) -> Any:
            wanted = float((i, n) == (whole, 0))
            return (wanted, linear(flows[i, n]), wanted) if flows[i, n] else pyo.Constraint.Infeasible

        devices = [(float(t * d), block.stage[i, j, t, d, n]) for i, j, t, d, n in times]
        block.devices_suffice = pyo.Constraint(expr=(None, linear(devices), float(instance.devices)))
        of_layer: dict[int, list[tuple[float, Any]]] = {layer: [] for layer in range(instance.size)}
        for column, time in times.items():
            for layer in members(column[1] & ~column[0]):
                of_layer[layer].append((time, block.stage[column]))

        @block.Constraint(block.LAYERS, doc="no layer's stage is slower than the slowest")
        def stages_are_bounded(b: Any, layer: int) -> Any:
            return None, significant([*of_layer[layer], (-1.0, b.slowest)]), 0.0

        block.objective = pyo.Expression(expr=linear([(1.0, block.slowest)]))

    def start(self, block: pyo.Block, instance: PipelineInstance, solution: PipelinePlan) -> None:
        """Set ``stage``; the rest follows."""
        chosen, ahead = set(), 0
        for place, stage in enumerate(solution.stages):
            behind = ahead | sum(1 << layer for layer in stage.layers)
            total = sum(each.replicas for each in solution.stages[place:])
            chosen.add((ahead, behind, stage.tensor, stage.replicas, total))
            ahead = behind
        for column, variable in block.stage.items():
            variable.set_value(int(column in chosen))

    def read(self, block: pyo.Block, instance: PipelineInstance) -> PipelinePlan:
        """The plan with the fastest options.

        Raises
        ------
        SolverError
            If a stage is there in part.
        """
        stages = Stages(instance)
        found = []
        for (i, j, t, d, n), variable in block.stage.items():
            value = pyo.value(variable)
            if abs(value - round(value)) > INTEGRALITY_TOL:
                raise SolverError(f"stage[{i}, {j}, {t}, {d}, {n}] is {value:.6g}, not a whole number")
            if round(value):
                found.append((i, stages.stage(j & ~i, t, d, -(-n // d))))
        return PipelinePlan(instance=instance.name, stages=tuple(stage for _, stage in sorted(found, key=_first)))

    def objective_value(self, instance: PipelineInstance, value: float) -> float:
        """Seconds."""
        return value * self.unit_s(instance)


def _first(pair: tuple[int, Any]) -> int:
    return pair[0].bit_count()


def _columns(instance: PipelineInstance) -> Iterator[tuple[Column, float]]:
    """Every stage that fits, with its time in seconds."""
    stages = Stages(instance)
    most = min(instance.devices, instance.micro_batches)
    ideals = stages.ideals(_MOST_IDEALS) or ()
    for j in ideals:
        for i in ideals:
            if i == j or i & ~j:
                continue
            for t in instance.tensors:
                for d in instance.replicas:
                    if t * d > instance.devices or stages.fastest_s(j & ~i, t, d) == inf:
                        continue
                    behind = 0 if j == (1 << instance.size) - 1 else 1
                    for n in range(d + behind, most + 1 if behind else d + 1):
                        seconds = stages.load_s(j & ~i, t, d, -(-n // d))
                        if seconds < inf:
                            yield (i, j, t, d, n), seconds
