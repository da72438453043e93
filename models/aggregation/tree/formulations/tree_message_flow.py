"""Aggregation in a tree by messages on links with big-M rows, for comparison."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.aggregation.tree.formulations.tree_aggregation import add_switches, read_switches, unit_s
from ddlopt.models.aggregation.tree.instance import AggregatingSwitches, TreeInstance
from ddlopt.models.aggregation.tree.tables import Floats, TreeTables, tables
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.linear import Rows, covers, term, total, weighted
from ddlopt.models.tolerances import let_pass_at_most


@dataclass(frozen=True)
class TreeMessageFlow(FormulationBase):
    r"""Messages on every link.

    With :math:`L_v` the messages that enter at v or below, and :math:`b_v = 1` if v aggregates, for each job

    .. math:: m_v \ge 1, \qquad m_v \ge \ell_v + \sum_{c\ \text{child of}\ v} m_c - (L_v - 1)\, b_v .

    A relaxation needs only a small part of :math:`b_v` where v receives fewer messages than :math:`L_v`.

    With a limit t on congestion, the residual capacity of the link above v, if each other job has one message there, is
    :math:`c_v = \lfloor (t / \rho_v - \sum_{i \ne j} g_i) / g_j \rfloor` messages. Then :math:`m_v \le c_v`,
    and :math:`L_v = \ell_v + \sum_c \min\{L_c, c_c\}` will do. This is ours.

    Parameters
    ----------
    limit_s : float, optional
        For congestion: answers that are worse are left out.

    Ports
    -----
    ``aggregates[j, v]``
        b, of useful pairs of job and switch.
    ``messages[j, v]``
        m, of switches that messages of the job reach.
    ``objective``
        Time in units of :func:`~ddlopt.models.aggregation.tree.formulations.tree_aggregation.unit_s`, to be minimised.
    """

    limit_s: float | None = None

    covers: ClassVar[type[Instance]] = TreeInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def build(self, block: pyo.Block, instance: TreeInstance) -> None:
        """Fill ``block``."""
        figures, unit, rates = tables(instance), unit_s(instance), instance.seconds_per_message
        add_switches(block, instance, figures)
        reached = [(j, v) for j, _ in enumerate(instance.jobs) for v in instance.order if figures.below[j, v]]
        block.REACHED = pyo.Set(dimen=2, initialize=reached)
        block.messages = pyo.Var(block.REACHED, bounds=(1, None), doc="m: on the link above a switch")
        b, m = block.aggregates, block.messages
        caps = self._caps(instance, figures)
        most = _arriving(instance, figures, caps)

        rows = Rows()
        for j, v in reached:
            arriving = total(m[j, c] for c in instance.children[v] if (j, c) in m) + instance.jobs[j].loads[v]
            saved = (float(most[j, v]) - 1.0) * term(b[j, v]) if (j, v) in b else 0.0
            rows["messages_are_passed_on"][j, v] = term(m[j, v]) >= arriving - saved
        seconds = {(j, v): instance.jobs[j].message_size * rates[v] / unit for j, v in reached}
        goal = weighted((seconds[pair], m[pair]) for pair in reached)
        if instance.goal == "congestion":
            block.busiest = pyo.Var(bounds=(0, None), doc="largest time of a link")
            goal = term(block.busiest)
            for v in sorted({v for _, v in reached}):
                on_link = [(j, v) for j, _ in enumerate(instance.jobs) if (j, v) in seconds]
                rows["links_are_bounded"][v] = covers(
                    block.busiest, weighted((seconds[pair], m[pair]) for pair in on_link)
                )
            for pair in reached:
                if caps[pair] < most[pair]:
                    rows["messages_are_limited"][pair] = term(m[pair]) <= float(caps[pair])
        rows.add_to(
            block,
            messages_are_passed_on="messages are passed on by a switch that does not aggregate",
            links_are_bounded="no link is busier than the busiest",
            messages_are_limited="a link carries what the limit lets it",
        )
        block.objective = pyo.Expression(expr=goal.expression)

    def _caps(self, instance: TreeInstance, figures: TreeTables) -> Floats:
        """Most messages on each link, shape (jobs, n); infinite without a limit."""
        if self.limit_s is None or instance.goal == "utilization":
            return np.full(figures.below.shape, np.inf)
        sizes = np.array([job.message_size for job in instance.jobs])[:, None]
        least = (sizes * (figures.below > 0)).sum(axis=0) - sizes
        # Raised before anything is taken off: a small rest of much has the rounding of much.
        room = let_pass_at_most(self.limit_s / np.array(instance.seconds_per_message)) - least
        caps: Floats = np.maximum(1.0, np.floor(room / sizes))
        return caps

    def start(self, block: pyo.Block, instance: TreeInstance, solution: AggregatingSwitches) -> None:
        """Set ``aggregates``; the rest follows."""
        for (j, v), variable in block.aggregates.items():
            variable.set_value(int(v in solution.switches[j]))

    def read(self, block: pyo.Block, instance: TreeInstance) -> AggregatingSwitches:
        """The switches of each job."""
        return read_switches(block, instance)

    def objective_value(self, instance: TreeInstance, value: float) -> float:
        """Seconds."""
        return value * unit_s(instance)


def _arriving(instance: TreeInstance, figures: TreeTables, caps: Floats) -> Floats:
    """Most messages that arrive at each switch, shape (jobs, n), where links carry at most ``caps``."""
    most = np.array([job.loads for job in instance.jobs], dtype=np.float64)
    for node in figures.order[:0:-1]:
        most[:, figures.parents[node]] += np.minimum(most[:, node], caps[:, node])
    return most
