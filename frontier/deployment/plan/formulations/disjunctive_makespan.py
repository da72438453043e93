"""The makespan bound of small graphs, with an order of operators on every device and of collectives."""

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.deployment.plan.bounds import plan_bound
from ddlopt.models.deployment.plan.evaluate import evaluate_plan
from ddlopt.models.deployment.plan.figures import PlanFigures
from ddlopt.models.deployment.plan.formulations.makespan_bound import MakespanBound
from ddlopt.models.deployment.plan.formulations.makespan_rows import Rows, Terms
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import UNITS, Replica
from ddlopt.models.deployment.plan.solution import Deployment, GroupPlan
from ddlopt.models.deployment.plan.units import plan_unit_s
from ddlopt.models.linear import significant
from ddlopt.models.tolerances import BOUND_MARGIN, OBJECTIVE_TOL
from ddlopt.models.units import check_big_m

# Disjunctions grow with the square of the tasks: it is an oracle for small instances.
_MOST_OPERATORS = 12
# As above.
_MOST_DEVICES = 8


@dataclass(frozen=True)
class DisjunctiveMakespan(MakespanBound):
    r"""The rows of :class:`~.MakespanBound`, and a schedule of every replica.

    Operator o starts on device i at :math:`S_{oi}` and takes :math:`q_{oi}` there, 0 if it is not there. For any two
    operators one goes first on a device, and for any two gradients one on the collective channel, at :math:`R_o`:

    .. math::
        & S_{pi} \ge S_{oi} + q_{oi} - M (1 - b_{opi}), \qquad S_{oi} \ge S_{pi} + q_{pi} - M b_{opi} \\
        & S_{ci} \ge S_{pk} + q_{pk} + D_{pk,ci} - M (1 - f_{pk,ci}) \\
        & R_p \ge R_o + r_o - M (1 - b_{op}), \qquad R_o \ge R_p + r_p - M b_{op}, \qquad
          R_o \ge S_{oi} + q_{oi} - M (1 - f_{oi}) \\
        & T \ge S_{oi} + q_{oi}, \qquad T \ge R_o + r_o

    with f = 1 (linear in x, y, z and in the device of what runs on a single one) where the replica of c on i needs
    something of that of p on k, which takes D to send, or where o is reduced on i.

    *M.* Nothing better is lost if steps take no longer than a known plan: the best with one action for all groups. So T
    is at most that time, M is that time, with D more in rows that have a D, and a D that is longer counts as that long.
    With ``every_plan``, or where none of these plans fits into memory, M is the sum of all durations that there can
    be; at any time of a step something runs, so no step takes longer.

    *What a host must not couple to.* Without ``every_plan``, what makes a plan the best that is slower than known ones.

    The order is free, so the optimum is at most the time of the best plan in the order that the simulator has, first
    come, first served. Links do not order their transfers here: their loads are those of the other rows. It is valid
    for every deployment, as those are.

    Parameters
    ----------
    every_plan : bool
        Whether the model has the slow plans as well.

    Ports
    -----
    ``decided[g, a]``, ``duplicated[o, l]``, ``time``, ``objective``
        As there.
    ``begins[o, i]``
        S in units.

    References
    ----------
    A. S. Manne, "On the job-shop scheduling problem", Operations Research 8(2), 1960, for the disjunctive rows.
    """

    every_plan: bool = False

    def refuses(self, instance: DeploymentInstance) -> str | None:
        """Many operators or devices."""
        if not self.pairs:
            return "it needs pairs"
        for what, count, most in (
            ("operators", len(instance.operators), _MOST_OPERATORS),
            ("devices", instance.devices, _MOST_DEVICES),
        ):
            if count > most:
                return f"it orders at most {most} {what}, and there are {count}; use makespan-bound"
        return None

    def build(self, block: pyo.Block, instance: DeploymentInstance) -> None:
        """Fill ``block``."""
        figures = PlanFigures(instance)
        most_s = math.inf if self.every_plan else _known_s(figures) * (1 + OBJECTIVE_TOL)
        rows = Rows(block, figures, plan_unit_s(instance), self.pairs, plan_bound(instance), most_s)
        rows.build()
        _Schedule(rows, most_s).build()


class _Schedule:
    """The rows that :class:`DisjunctiveMakespan` has besides."""

    def __init__(self, rows: Rows, most_s: float) -> None:
        self.rows, self.block, self.figures = rows, rows.block, rows.figures
        self.instance, self.group, self.unit = rows.instance, rows.group, rows.unit
        self.devices = range(self.instance.devices)
        self.at = self.instance.device_group_of.tolist()
        self.known = math.isfinite(most_s)
        # Of the estimate of the objective that the unit is made of.
        self.most = most_s / self.unit if self.known else self._all_of_it() / self.unit

    def build(self) -> None:
        block, operators = self.block, self.rows.operators
        block.begins = pyo.Var(operators, self.devices, bounds=(0, None), doc="S")
        block.single = pyo.Var(operators, self.devices, domain=pyo.Binary, doc="runs on this device only")
        block.schedule = pyo.ConstraintList()
        for o in operators:
            for j in self.rows.places:
                here = [(1.0, block.single[o, i]) for i in self.devices if self.at[i] == j]
                runs = [(-1.0, block.runs[o, lay, j]) for lay in self.rows.spread if (o, lay, j) in block.runs]
                block.schedule.add(significant([*here, *runs]) == 0)
            for i in self.devices:
                self._after([(1.0, block.time)], self._end(o, i))
        pairs = list(combinations(operators, 2))
        block.first = pyo.Var(pairs, self.devices, domain=pyo.Binary, doc="b")
        for o, p in pairs:
            for i in self.devices:
                first = block.first[o, p, i]
                self._after([(1.0, block.begins[p, i])], self._end(o, i), [(1.0, first)], 1)
                self._after([(1.0, block.begins[o, i])], self._end(p, i), [(-1.0, first)], 0)
        for edge, place in self.rows.largest.items():
            self._needs(*edge, self.instance.tensors[place].size_bytes)
        self._channel()

    def _end(self, o: int, i: int) -> Terms:
        """When an operator ends on a device."""
        figures, block, j = self.figures, self.block, self.at[i]
        terms: Terms = [(1.0, block.begins[o, i]), (self.rows.whole[o, j], block.single[o, i])]
        for lay, layout in enumerate(figures.layouts):
            if layout.split is None or j not in layout.device_groups:
                continue
            part = self.rows.part[o, lay, j]
            terms += [(part, variable) for _, variable in self.rows.decided(o, lay)]
            if layout.replicas > 1:
                terms.append((self.rows.whole[o, j] - part, block.duplicated[o, lay]))
        return terms

    def _after(
        self,
        later: Terms,
        earlier: Terms,
        if_one: Terms | None = None,
        count: float = 0.0,
        sent: float = 0.0,
    ) -> None:
        """``later`` is at least ``earlier`` if the terms ``if_one`` sum up to ``count``; they are at most that.

        Whatever they sum up to, the terms ``earlier`` are at most the end of a step and ``sent``.
        """
        big = self.most + sent
        condition = [(-big * value, variable) for value, variable in if_one or ()]
        row = [*later, *((-value, variable) for value, variable in earlier), *condition]
        self.block.schedule.add(significant(row) >= -big * count)

    def _needs(self, p: int, c: int, size: float) -> None:
        """Replicas of a consumer that wait for replicas of its producer."""
        block = self.block
        for k in self.devices:
            for i in self.devices:
                begins: Terms = [(1.0, block.begins[c, i])]
                sent = self._sent_s(size, k, i, 1.0)
                both = [(1.0, block.single[p, k]), (1.0, block.single[c, i])]
                ends = [*self._end(p, k), (sent, block.single[p, k])] if k != i else self._end(p, k)
                self._after(begins, ends, both, 2, sent)
                if self.group[p] == self.group[c]:
                    if k == i:
                        self._after(begins, self._end(p, k), self._laid_out(p, k), 1)
                elif size:
                    self._between(p, c, size, k, i)

    def _laid_out(self, o: int, i: int) -> Terms:
        """Whether a device has one of several replicas of an operator."""
        return [
            term
            for lay in self.figures.split
            if self.at[i] in self.figures.layouts[lay].device_groups
            for term in self.rows.decided(o, lay)
        ]

    def _between(self, p: int, c: int, size: float, k: int, i: int) -> None:
        """From a part of the producer on device k to one of the consumer on device i, for operators of two groups."""
        block, seats = self.block, self.figures.seats
        needed: Terms = []
        sent: Terms = []
        for s, one in enumerate(seats):
            for t, other in enumerate(seats):
                if one.split is None or other.split is None:
                    continue
                overlap = self._overlap(one.parts, other.parts, k, i)
                if overlap:
                    needed.append((1.0, block.pair[p, c, s, t]))
                    sent.append((self._sent_s(size, k, i, overlap), block.pair[p, c, s, t]))
        # A duplicated producer gives everything from one of its devices.
        spared = [(-1.0, block.duplicated[p, lay]) for lay in self.figures.split]
        if needed:
            longest = max(units for units, _ in sent)
            self._after([(1.0, block.begins[c, i])], [*self._end(p, k), *sent], [*needed, *spared], 1, longest)

    def _overlap(self, one: tuple[Replica, ...], other: tuple[Replica, ...], k: int, i: int) -> float:
        source = next((replica for replica in one if replica.device == k), None)
        target = next((replica for replica in other if replica.device == i), None)
        if source is None or target is None:
            return 0.0
        units = min(source.last, target.last) - max(source.first, target.first)
        return max(0, units) / UNITS

    def _sent_s(self, size: float, k: int, i: int, overlap: float) -> float:
        """Units of time to send a part of a tensor; 0 on the device itself and for nothing."""
        if k == i or not size:
            return 0.0
        seconds = size * overlap / float(self.figures.rate[k, i]) + self.instance.latency_s
        units = seconds / self.unit * (1 - BOUND_MARGIN)
        return min(units, self.most) if self.known else units

    def _channel(self) -> None:
        """Collectives one at a time."""
        block, gradients = self.block, self.rows.gradients
        block.collective = pyo.Var(gradients, bounds=(0, None), doc="R")
        for o in gradients:
            begins: Terms = [(1.0, block.collective[o])]
            self._after([(1.0, block.time)], [*begins, (1.0, block.reduced[o])])
            for i in self.devices:
                splits = [lay for lay in self.figures.split if self.at[i] in self.figures.layouts[lay].device_groups]
                reduced = [(1.0, block.decided[self.group[o], self.rows.all_reduce[lay]]) for lay in splits]
                spared = [(-1.0, block.duplicated[o, lay]) for lay in splits]
                if reduced:
                    self._after(begins, self._end(o, i), [*reduced, *spared], 1)
        pairs = list(combinations(gradients, 2))
        block.first_reduced = pyo.Var(pairs, domain=pyo.Binary, doc="b: the gradient is reduced first")
        for o, p in pairs:
            first = block.first_reduced[o, p]
            one: Terms = [(1.0, block.collective[o])]
            other: Terms = [(1.0, block.collective[p])]
            self._after(other, [*one, (1.0, block.reduced[o])], [(1.0, first)], 1)
            self._after(one, [*other, (1.0, block.reduced[p])], [(-1.0, first)], 0)

    def _all_of_it(self) -> float:
        """The M of all plans, if it is not too large to say anything."""
        # The unit is a thousandth of what a step takes.
        return check_big_m(self._longest(), 1e3 * self.unit, self.instance.name, "the time of a plan")

    def _longest(self) -> float:
        """Seconds of everything that any plan may have devices, links and the channel do, one after the other."""
        instance, figures, count = self.instance, self.figures, self.instance.devices
        slowest = float(figures.rate.min())
        total = float((figures.whole_s.max(axis=1) * count).sum() + figures.reduce_s.max(axis=1, initial=0).sum())
        for operator in instance.operators:
            total += 2 * count * (operator.gradient_bytes / slowest + instance.latency_s)
        for tensor in instance.tensors:
            total += len(tensor.consumers) * count * (tensor.size_bytes / slowest + count * instance.latency_s)
        return total + float(np.max(figures.part_s, initial=0.0)) * count * len(instance.operators)


def _known_s(figures: PlanFigures) -> float:
    """Seconds of the best plan with one action for all groups; infinite if none fits into memory."""
    instance, best = figures.instance, math.inf
    for decision in figures.decisions:
        chosen, split, _ = figures.layouts[decision.layout]
        devices = instance.devices_of(chosen)
        plans = tuple(
            GroupPlan(
                device_groups=chosen,
                mode=decision.mode,
                split=split or "even",
                devices=None if split else (int(devices[0]),) * len(members),
            )
            for members in instance.members
        )
        checked = evaluate_plan(instance, Deployment(instance=instance.name, groups=plans), exact=True)
        if checked.feasible and checked.objective is not None:
            best = min(best, float(checked.objective))
    return best
