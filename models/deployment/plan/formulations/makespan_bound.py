"""A certified lower bound on the time of a step, which is also a plan: no big-M."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.deployment.plan.bounds import plan_bound
from ddlopt.models.deployment.plan.figures import PlanFigures
from ddlopt.models.deployment.plan.formulations.makespan_rows import Rows
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import parts
from ddlopt.models.deployment.plan.solution import Deployment, GroupPlan
from ddlopt.models.deployment.plan.units import plan_unit_s
from ddlopt.models.errors import SolverError
from ddlopt.models.tolerances import INTEGRALITY_TOL

# Variables of pairs; without them the model is a relaxation that is far smaller.
_MOST_PAIRS = 500_000


@dataclass(frozen=True)
class MakespanBound(FormulationBase):
    r"""Path, devices, links and the collective channel, each by itself, of one deployment.

    :math:`x_{ga} = 1` if group g has decision a: device groups with a split of the batch (a *layout*) and a mode. In
    layout l operator o may be duplicated, :math:`z_{ol} \le x_{g,l}`. With ``model_parallel`` on device groups P it
    runs in device group j if :math:`w_{oPj} = 1`, :math:`\sum_j w_{oPj} = x_{gP}`. So an operator has a *seat* s: a
    layout with :math:`u_{os} = \sum_{a \in s} x_{ga}`, or one device of group j with
    :math:`u_{os} = \sum_P w_{oPj}`. For operators p, c of two groups with a tensor between them, :math:`y_{pc,st}`
    links the seats on the local polytope,
    :math:`\sum_t y_{pc,st} = u_{ps}`, :math:`\sum_s y_{pc,st} = u_{ct}`. Linear in these are

    * :math:`d_o`, the least time of any replica of o; :math:`D_{pc}`, what passes at least between the end of p's
      replicas and the start of *each* replica of its consumer c; :math:`D'_{pc}` between replicas of p and c that share
      a sample of the batch;
    * :math:`q_{oj}`, seconds of o on a device of group j, the mean over its devices (:math:`q'_{oj}` without what is
      duplicated), :math:`r_o` on the collective channel, and :math:`m_{pc,e}` on every link e between device groups;
    * :math:`s_o` the way of a gradient to its server and back, :math:`s'_o` the way back.

    With E, before which no replica of o ends, and B, what passes at least from the start of any replica of o to the end
    of the step, the least T is sought under

    .. math::
        & E_c \ge E_p + D_{pc} + d_c, \qquad B_p \ge d_p + D'_{pc} + B_c, \qquad B_o \ge d_o + r_o + s'_o \\
        & T \ge E_o + s_o, \qquad T \ge E_o + r_o + \sum_{p > o} r_p, \qquad
          T \ge E_o + \sum_{p > o} q_{pj}, \qquad T \ge B_o + \sum_{p < o} q'_{pj}, \\
        & T \ge E_o + \sum_{p \ge o} m_{pc,e}, \qquad T \ge E_p + m_{pc,e} + B_c,

    where p > o are the operators that need what o makes, directly or not, p < o those that o needs; further that T is
    at least the load of each device, of each link and of the channel, and that resident bytes fit, in the mean of each
    device group, together with what any operator there reads and makes.

    *Valid* for every deployment, with any devices in ``model_parallel``: all replicas of p > o start after one of o has
    ended, and a device, a link or the channel does them one at a time. The last of the p < o on a device that is not
    duplicated holds a sample of the batch; so does some replica of everything on a path to o and on to the end, which
    wait for each other; so does what the last transfer of a tensor brings, unless c is duplicated, for which the row
    has the largest m less. Loads on the devices of a group are equal but for ``model_parallel``, where the mean is at
    most the largest. D and m are those of a producer that is not duplicated, less their largest value in a layout times
    z. A tensor with several consumers loads links for one of them only.

    T is measured in units of :func:`~ddlopt.models.deployment.plan.units.plan_unit_s`, and is at least the bound of
    :func:`~ddlopt.models.deployment.plan.bounds.plan_bound`. What takes more than 1e8 units, and four times all
    operators on one device, counts as if it took just that.

    Parameters
    ----------
    pairs : bool
        Whether to have y; without, what moves between groups counts nothing, and the model is small.

    Ports
    -----
    ``decided[g, a]``
        x; a is a place in ``PlanFigures(instance).decisions``.
    ``duplicated[o, l]``
        z; l is a place in ``PlanFigures(instance).layouts``.
    ``time``
        T in units of :func:`~ddlopt.models.deployment.plan.units.plan_unit_s`.
    ``objective``
        The same, to be minimised.

    References
    ----------
    S. Zhang et al., "Expediting distributed DNN training with device topology-aware graph deployment" (TAG), IEEE TPDS
    34(4), 2023, for the problem. The model is ours.
    """

    pairs: bool = True

    covers: ClassVar[type[Instance]] = DeploymentInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    outer: ClassVar[bool] = True
    # Its rows for memory are necessary ones.
    relaxed: ClassVar[bool] = True

    def refuses(self, instance: DeploymentInstance) -> str | None:
        """Pairs of layouts beyond what fits."""
        most = len(instance.tensors) * 4 ** (len(instance.device_groups) + 1)
        if self.pairs and most > _MOST_PAIRS * 8:
            return "there are too many pairs of layouts; use pairs=False"
        return None

    def objective_value(self, instance: DeploymentInstance, value: float) -> float:
        """Seconds."""
        return value * plan_unit_s(instance)

    def build(self, block: pyo.Block, instance: DeploymentInstance) -> None:
        """Fill ``block``."""
        Rows(block, PlanFigures(instance), plan_unit_s(instance), self.pairs, plan_bound(instance)).build()

    def start(self, block: pyo.Block, instance: DeploymentInstance, solution: Deployment) -> None:
        """The decisions of a deployment, and what it duplicates."""
        figures = PlanFigures(instance)
        known = {
            (*figures.layouts[decision.layout][::2], decision.mode): a for a, decision in enumerate(figures.decisions)
        }
        for group, plan in enumerate(solution.groups):
            chosen = known[_key(instance, plan)]
            for a in range(len(figures.decisions)):
                block.decided[group, a].set_value(int(a == chosen))

    def read(self, block: pyo.Block, instance: DeploymentInstance) -> Deployment:
        """The plan; it may need more memory than there is, of which the model has necessary rows only.

        With ``model_parallel`` an operator has the device group with most of it, and there the device that has least to
        do so far.
        """
        figures = PlanFigures(instance)
        load = np.zeros(instance.devices)
        plans = []
        for group, members in enumerate(instance.members):
            values = [pyo.value(block.decided[group, a]) for a in range(len(figures.decisions))]
            if abs(max(values) - 1) > INTEGRALITY_TOL:
                raise SolverError(f"no decision for group {group}: the largest value is {max(values):.6g}")
            layout, mode = figures.decisions[int(np.argmax(values))]
            chosen, split, _ = figures.layouts[layout]
            devices: list[int] = []
            for place in members if split is None else ():
                shares = [pyo.value(block.runs[place, layout, j]) for j in chosen]
                j = chosen[int(np.argmax(shares))]
                devices.append(min(instance.devices_of((j,)), key=lambda device: load[device]))
                load[devices[-1]] += figures.whole_s[place, j]
            plans.append(
                GroupPlan(
                    device_groups=chosen,
                    mode=mode,
                    split=split or "even",
                    devices=tuple(devices) if split is None else None,
                )
            )
        duplicated = [place for place, layout in block.duplicated if pyo.value(block.duplicated[place, layout]) > 0.5]
        return Deployment(
            instance=instance.name,
            instance_digest=instance.digest,
            groups=tuple(plans),
            duplicated=tuple(
                sorted(place for place in duplicated if plans[instance.operators[place].group].mode == "all_reduce")
            ),
        )


def _key(instance: DeploymentInstance, plan: GroupPlan) -> tuple[Any, ...]:
    """What tells decisions apart: device groups, parts and mode."""
    if len(instance.devices_of(plan.device_groups)) == 1:
        return plan.device_groups, parts(instance, plan.device_groups, "even"), "all_reduce"
    if plan.mode == "model_parallel":
        return plan.device_groups, (), plan.mode
    return plan.device_groups, parts(instance, plan.device_groups, plan.split), plan.mode
