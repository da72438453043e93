"""Options, and what is sent before and after the last gradient, without any order."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from operator import le
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.compression.forward.instance import ForwardInstance, ForwardPlan
from ddlopt.models.compression.forward.sides import best_sides, ordered
from ddlopt.models.compression.forward.units import counted, forward_unit_s
from ddlopt.models.compression.timeline.units import error_limit, error_unit, excess_room
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.tolerances import INTEGRALITY_TOL, NEGLIGIBLE_COEFFICIENT

_FEW_LABELS = 1000
"""Of an order that is only compared with others."""


@dataclass(frozen=True)
class ForwardSides(FormulationBase):
    r"""Options, and on which side of the last gradient each gradient is sent; those in between are counted.

    Any plan has an order as good in which what is sent before the last gradient n, at S, is sent in the order of the
    backward pass and what is sent after it by the longest tail
    (:func:`~ddlopt.models.compression.forward.sides.best_sides`). With :math:`b_i` and :math:`a_i` the time on the wire
    of what gradient i sends before and after S, heads :math:`P_i = R_i + \sum_{k \le i} e_k` and tails q,

    .. math::
        \min\ T:\qquad & S \ge P_n,\qquad S \ge P_i + \textstyle\sum_{i \le k < n} b_k \\
        & T \ge S + c_n + q_n,\qquad T \ge S + c_n + q_i + \textstyle\sum_{i \le k < n} a_k .

    These rows stand for *single* gradients i: the ``first``, the ``last``, and each ``every``-th between. One of those
    takes an option whole, before or after, or cut: then it is launched twice at least and has a part of 1/K or more on
    either side, with K the most parts that there may be. Of the gradients between two single ones those that have the
    same menu are interchangeable: they are counted by option, :math:`z_{imo}` of menu m behind single gradient i, and
    their wire is divided between the sides at will. A budget of error is one row.

    So it bounds all plans. It is exact where all gradients are single and none is cut into more than two parts.

    *What a host must not couple to.* The order of what is sent, which is none of the model. Without ``every_option``,
    options for which another stands that is no worse in anything.

    Ports
    -----
    ``whole[i, o, s]``
        Whether single gradient i takes option o and is sent whole, before (s = 0) or after the last (s = 1).
    ``cut[i, o]`` : if gradients may be sent in parts
        Whether it takes the option in parts.
    ``counts[i, m, o]`` : if gradients are counted
        z.
    ``time``
        T in units.
    ``objective``
        T, to be minimised.

    References
    ----------
    Heads and tails: J. Carlier, "The one-machine sequencing problem", European Journal of Operational Research 1982.
    The two sides and the counts are ours.

    Parameters
    ----------
    first, last : int
        Gradients at either end that are single; the first and the last of all are so in any case.
    every : int
        Of the gradients between them, the distance from one single one to the next; 0: none is single.
    every_option : bool
        Whether to have the options that another stands in for.
    """

    first: int = 8
    last: int = 24
    every: int = 4
    every_option: bool = False

    covers: ClassVar[type[Instance]] = ForwardInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    outer: ClassVar[bool] = True

    def build(self, block: pyo.Block, instance: ForwardInstance) -> None:
        """Fill ``block``."""
        timeline, count, unit = instance.timeline, instance.size, forward_unit_s(instance)
        menu_of, menus = [gradient.menu for gradient in timeline.gradients], timeline.menus
        singles, groups = self._singles(count), self._groups(instance)
        end, most = count - 1, instance.parts[-1]
        offered = [sorted(set(each.values())) for each in self._offers(instance)]
        options = [(i, o) for i in singles for o in offered[menu_of[i]]]
        cuttable = [(i, o) for i, o in options if most > 1 and i < end]
        keys = [(i, m, o) for i, m in groups for o in offered[m]]
        sides = [(i, o, s) for i, o in options for s in (0, 1) if i < end or s == 0]
        block.whole = pyo.Var(sides, domain=pyo.Binary, doc="whether a single gradient is sent whole, before or after")
        block.cut = pyo.Var(cuttable, domain=pyo.Binary, doc="whether a single gradient is sent in parts")
        block.part = pyo.Var(cuttable, bounds=(0, None), doc="of a gradient in parts, before the last, in units")
        block.counts = pyo.Var(
            keys, domain=pyo.NonNegativeIntegers, bounds=lambda _, i, m, o: (0, groups[i, m]), doc="gradients between"
        )
        block.divided = pyo.Var(list(groups), bounds=(0, None), doc="of gradients between, before the last, in units")
        block.encode = pyo.Var(singles, bounds=(0, None), doc="encoding up to a single gradient, in units")
        block.before = pyo.Var(singles, bounds=(0, None), doc="sent before the last, from a gradient on, in units")
        block.after = pyo.Var(singles, bounds=(0, None), doc="sent after the last, from a gradient on, in units")
        block.start = pyo.Var(bounds=(0, None), doc="when the last is sent, in units")
        block.time = pyo.Var(bounds=(0, None), doc="in units")
        option = {(i, o): menus[menu_of[i]][o] for i, o in options}
        lasts = {key: counted(one.occupation_s / unit) for key, one in option.items()}
        launch = {key: counted(option[key].launch_s / unit) for key in cuttable}
        payload = {key: counted(lasts[key] - launch[key]) for key in cuttable}
        wire = {(m, o): counted(menus[m][o].occupation_s / unit) for m in range(len(menus)) for o in offered[m]}
        ready = {i: timeline.gradients[i].ready_s / unit for i in singles}
        tail = {i: instance.tails_s[i] / unit for i in singles}
        behind = dict(pairwise(singles))
        ahead = {later: earlier for earlier, later in behind.items()}
        mine = {i: [m for j, m in groups if j == i] for i in singles}

        def taken(b: Any, i: int, o: int) -> Any:
            sides = [b.whole[i, o, s] for s in (0, 1) if (i, o, s) in b.whole]
            return sum(sides) + sum(b.cut[key] for key in [(i, o)] if key in b.cut)

        def of(i: int) -> Iterable[int]:
            return offered[menu_of[i]]

        @block.Constraint(singles, doc="a single gradient takes one option, on one side or in parts")
        def one_is_taken(b: Any, i: int) -> Any:
            return sum(taken(b, i, o) for o in of(i)) == 1

        @block.Constraint(list(groups), doc="gradients between take one option each")
        def all_are_taken(b: Any, i: int, m: int) -> Any:
            return sum(b.counts[i, m, o] for o in offered[m]) == groups[i, m]

        @block.Constraint(cuttable, doc="a part or more of a gradient in parts is before")
        def part_is_before(b: Any, i: int, o: int) -> Any:
            return b.part[i, o] >= (launch[i, o] + payload[i, o] / most) * b.cut[i, o]

        @block.Constraint(cuttable, doc="a part or more of a gradient in parts is after")
        def part_is_after(b: Any, i: int, o: int) -> Any:
            return b.part[i, o] <= (launch[i, o] + payload[i, o] * (1 - 1 / most)) * b.cut[i, o]

        @block.Constraint(list(groups), doc="what is divided is there")
        def divided_is_there(b: Any, i: int, m: int) -> Any:
            return b.divided[i, m] <= sum(wire[m, o] * b.counts[i, m, o] for o in offered[m])

        @block.Constraint(singles, doc="encoding adds up")
        def encoding_adds_up(b: Any, i: int) -> Any:
            own = sum(counted(option[i, o].encode_s / unit) * taken(b, i, o) for o in of(i))
            if i not in ahead:
                return b.encode[i] == own
            there = [(ahead[i], m, o) for m in mine[ahead[i]] for o in offered[m]]
            between = sum(counted(menus[m][o].encode_s / unit) * b.counts[j, m, o] for j, m, o in there)
            return b.encode[i] == b.encode[ahead[i]] + between + own

        @block.Constraint(singles, doc="what is sent before the last adds up")
        def before_adds_up(b: Any, i: int) -> Any:
            if i == end:
                return b.before[i] == 0
            own = sum(lasts[i, o] * b.whole[i, o, 0] + (b.part[i, o] if most > 1 else 0) for o in of(i))
            return b.before[i] == b.before[behind[i]] + own + sum(b.divided[i, m] for m in mine[i])

        @block.Constraint(singles, doc="what is sent after the last adds up")
        def after_adds_up(b: Any, i: int) -> Any:
            if i == end:
                return b.after[i] == 0
            own = sum(lasts[i, o] * b.whole[i, o, 1] for o in of(i))
            if most > 1:
                own += sum((launch[i, o] + lasts[i, o]) * b.cut[i, o] - b.part[i, o] for o in of(i))
            between = sum(wire[m, o] * b.counts[i, m, o] for m in mine[i] for o in offered[m])
            return b.after[i] == b.after[behind[i]] + own + between - sum(b.divided[i, m] for m in mine[i])

        itself = sum(lasts[end, o] * block.whole[end, o, 0] for o in of(end))

        @block.Constraint(singles, doc="the last waits for what is before it")
        def last_waits(b: Any, i: int) -> Any:
            return b.start >= ready[i] + b.encode[i] + b.before[i]

        @block.Constraint(singles, doc="the forward pass waits for what is after the last")
        def forward_waits(b: Any, i: int) -> Any:
            return b.time >= b.start + itself + b.after[i] + tail[i]

        if timeline.error_budget is not None:
            least = [min(one.error for one in menu) for menu in menus]
            scale = error_unit(timeline)
            over = {
                (m, o): counted((menus[m][o].error - least[m]) / scale) for m in range(len(menus)) for o in offered[m]
            }
            over = {pair: value if value > NEGLIGIBLE_COEFFICIENT else 0.0 for pair, value in over.items()}
            spent = sum(over[menu_of[i], o] * taken(block, i, o) for i, o in options)
            spent += sum(over[m, o] * block.counts[i, m, o] for i, m, o in keys)
            block.error_budget_is_kept = pyo.Constraint(
                expr=spent <= error_limit(timeline), doc="the error is within its budget"
            )
        block.objective = pyo.Expression(expr=block.time)

    def read(self, block: pyo.Block, instance: ForwardInstance) -> ForwardPlan:
        """Options, those that encode least first among identical gradients, and the best order for them.

        Of gradients that are cut, one after the other gets the number of parts that is best for the order.
        """
        choices, parts = [0] * instance.size, [1] * instance.size
        menus, menu_of = instance.timeline.menus, [gradient.menu for gradient in instance.timeline.gradients]
        for (i, o, _), variable in block.whole.items():
            if variable.value > 0.5:
                choices[i] = o
        for (i, o), variable in block.cut.items():
            if variable.value > 0.5:
                choices[i], parts[i] = o, instance.parts[1]
        singles = self._singles(instance.size)
        for i, m in self._groups(instance):
            behind = min(j for j in singles if j > i)
            same = [g for g in range(i + 1, behind) if menu_of[g] == m]
            found = [
                o
                for j, n, o in block.counts
                if (j, n) == (i, m)
                for _ in range(_whole(block.counts[j, n, o].value, instance.name))
            ]
            if len(found) != len(same):
                raise SolverError(
                    f"'{instance.name}': {len(found)} of {len(same)} interchangeable gradients take an option"
                )
            for g, o in zip(same, sorted(found, key=lambda o: menus[m][o].encode_s), strict=True):
                choices[g] = o
        for i in [i for i, cut in enumerate(parts) if cut > 1]:
            tried = [(*parts[:i], cut, *parts[i + 1 :]) for cut in instance.parts]
            parts[i] = min(tried, key=lambda cuts: best_sides(instance, choices, cuts, _FEW_LABELS).time_s)[i]
        return ordered(instance, choices, parts, best_sides(instance, choices, parts).before)

    def start(self, block: pyo.Block, instance: ForwardInstance, solution: ForwardPlan) -> None:
        """Options of a plan, and what it sends before the last gradient; the rest follows."""
        unit, end = forward_unit_s(instance), instance.size - 1
        at = {place: solution.order.index(place) for place in set(solution.order)}
        early = [0] * instance.size
        for place in solution.order[: at[end]]:
            early[place] += 1
        for variable in (*block.whole.values(), *block.cut.values(), *block.part.values(), *block.counts.values()):
            variable.set_value(0)
        for variable in block.divided.values():
            variable.set_value(0.0)
        singles, menus, most = self._singles(instance.size), self._offers(instance), instance.parts[-1]
        for i, cut in enumerate(solution.parts):
            menu = instance.timeline.gradients[i].menu
            o = menus[menu][solution.choices[i]]
            one = instance.timeline.menus[menu][o]
            payload = one.wire_s + one.decode_s
            sent = early[i] * (one.launch_s + payload / cut) / unit
            if i == end:
                block.whole[i, o, 0].set_value(1)
            elif i not in singles:
                key = max(j for j in singles if j < i), menu
                block.counts[(*key, o)].set_value(block.counts[(*key, o)].value + 1)
                block.divided[key].set_value(block.divided[key].value + min(sent, one.occupation_s / unit))
            elif 0 < early[i] < cut:
                block.cut[i, o].set_value(1)
                block.part[i, o].set_value(min(sent, (one.launch_s + payload * (1 - 1 / most)) / unit))
            else:
                block.whole[i, o, 0 if early[i] else 1].set_value(1)

    def objective_value(self, instance: ForwardInstance, value: float) -> float:
        """Seconds for as much in units."""
        return value * forward_unit_s(instance)

    def _offers(self, instance: ForwardInstance) -> list[dict[int, int]]:
        return _stand_ins(instance, self.every_option)

    def _singles(self, count: int) -> list[int]:
        inner = range(self.first, count - self.last, self.every) if self.every else ()
        return sorted({0, count - 1, *range(min(self.first, count)), *inner, *range(max(0, count - self.last), count)})

    def _groups(self, instance: ForwardInstance) -> dict[tuple[int, int], int]:
        """How many gradients of a menu there are behind a single one and before the next."""
        found: Counter[tuple[int, int]] = Counter()
        for i, j in pairwise(self._singles(instance.size)):
            found.update((i, gradient.menu) for gradient in instance.timeline.gradients[i + 1 : j])
        return dict(sorted(found.items()))


def _stand_ins(instance: ForwardInstance, itself: bool) -> list[dict[int, int]]:
    """By menu, of every option that may be within the budget one that is no worse in anything; of most, itself.

    Of all of them, if ``itself``.
    """
    room, most, found = excess_room(instance.timeline), instance.parts[-1], list[dict[int, int]]()
    for menu in instance.timeline.menus:
        least = min(one.error for one in menu)
        fits = {o: one for o, one in enumerate(menu) if room is None or one.error - least <= room}
        if itself:
            found.append({o: o for o in fits})
            continue
        figures = {
            o: (
                one.encode_s,
                one.occupation_s,
                one.launch_s if most > 1 else 0.0,
                one.error if room is not None else 0.0,
            )
            for o, one in fits.items()
        }
        best = sorted(fits, key=lambda o: (figures[o], o))  # what beats an option comes before it
        found.append({o: next(k for k in best if all(map(le, figures[k], figures[o]))) for o in fits})
    return found


def _whole(value: float, name: str) -> int:
    if abs(value - round(value)) > INTEGRALITY_TOL:
        raise SolverError(f"'{name}': an option is taken {value:g} times")
    return round(value)
