"""Messages on several lanes, exactly: which gradients go together, with which option, and so along which lanes."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem
from ddlopt.models.compression.timeline.choices import plan_of
from ddlopt.models.compression.timeline.formulations.overlap_timeline import (
    OverlapTimeline,
    Rows,
    add_row_of_messages,
    by_gradient,
    linear,
    terms_of,
)
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.compression.timeline.lane_messages import LaneMessages, lane_messages_of
from ddlopt.models.compression.timeline.units import (
    LEAST_TIME,
    error_limit,
    error_unit,
    most_s,
    time_limit,
    time_unit_s,
)
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.linear import check_range
from ddlopt.models.units import LARGEST_OF_EQUATIONS, check_big_m

# Messages beyond which the model takes longer than anybody waits.
_LARGEST = 50_000


@dataclass(frozen=True)
class LaneTimeline(FormulationBase):
    r"""When messages leave each lane, and when each lane is done with them.

    A *message* a is a run of gradients :math:`f_a .. l_a` with an option, as in
    :class:`~ddlopt.models.compression.timeline.formulations.overlap_timeline.OverlapTimeline`; :math:`x_a = 1` if it is
    sent. It takes :math:`e_a` of encoding, has the error :math:`g_a`, and keeps lane :math:`s = 1 .. m` busy for
    :math:`d_{as}` if it passes it (:math:`a \in U_s`), else :math:`d_{as} = 0`. Of the message that ends with gradient
    i let :math:`p_{is}` be when it has passed lanes up to s, :math:`q_{is}` when lane s is done with all messages up to
    i, and :math:`d_{is} = \sum_{l_a = i} d_{as} x_a`, :math:`u_{is} = \sum_{l_a = i, a \in U_s} x_a`:

    .. math::
        \min\ & T \ge p_{im},\ q_{ns} \\
        & p_{i0} = R_i + \sum_{l_a \le i} e_a x_a \\
        & p_{is} \ge p_{i,s-1} + d_{is},\qquad p_{is} \ge q_{i-1,s} + d_{is} - M\,(1 - u_{is}) \\
        & q_{is} \ge q_{i-1,s} + d_{is},\qquad q_{is} \ge p_{i0} + d_{is} \\
        & q_{is} \ge p_{i,s-1} + d_{is} - M\,(1 - u_{is}) \\
        & \sum_{f_a = 1} x_a = 1,\qquad \sum_{l_a = i} x_a = \sum_{f_a = i + 1} x_a,\qquad x_a \in \{0, 1\} .

    The rows without M hold for messages that do not pass the lane as well: that lane s has nothing to do before
    gradient i is encoded delays nobody, as gradients are encoded in order. M is a time that no plan exceeds.
    Without fusion the rows have no M where every message that ends with i passes the lane, and the last one is
    left out where none passes an earlier lane. So with one lane that all pass there is no M.

    Budgets and the goal ``error`` are as there, and so are units. No plan is left out but for a budget.

    Ports
    -----
    ``sent[first, last, option]``
        x; ``option`` is a place in the menu of the first gradient.
    ``passed[i, s]``, ``done[i, s]``
        p and q in units; s counts lanes from 0.
    ``time``
        T in units of :func:`~ddlopt.models.compression.timeline.units.time_unit_s`.
    ``excess`` : with an error budget, or goal ``error``
        :math:`\sum g_a x_a` beyond the least error, in units of
        :func:`~ddlopt.models.compression.timeline.units.error_unit`.
    ``objective``
        The time or the error in these units, to be minimised.

    References
    ----------
    Z. Wang et al., "Hi-speed DNN training with Espresso: unleashing the full potential of gradient compression with
    near-optimal usage strategies", EuroSys 2023, for lanes beside the wire. The model is ours.
    """

    covers: ClassVar[type[Instance]] = CompressionInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: CompressionInstance) -> str | None:
        """What has no lanes; fusion where there are too many messages."""
        if not instance.lanes:
            return "it sends gradients along lanes, and there are none; use overlap-timeline"
        if lane_messages_of(instance, _LARGEST) is None:
            return f"there are more than {_LARGEST} messages to choose from; use lane-search"
        return None

    def build(self, block: pyo.Block, instance: CompressionInstance) -> None:
        """Fill ``block``."""
        messages = lane_messages_of(instance)
        assert messages is not None
        starting, ending = (by_gradient(places, instance.size) for places in (messages.first, messages.last))
        block.MESSAGES = pyo.Set(dimen=3, initialize=messages.keys, doc="(first, last, option)")
        block.GRADIENTS = pyo.Set(initialize=range(instance.size))
        block.LANES = pyo.Set(initialize=range(len(instance.lanes)))
        block.sent = pyo.Var(block.MESSAGES, domain=pyo.Binary, doc="whether the message is sent")
        block.encoded = pyo.Var(block.GRADIENTS, bounds=(0, None), doc="encoding of all messages up to there, in units")
        block.passed = pyo.Var(block.GRADIENTS, block.LANES, bounds=(0, None), doc="when it has passed, in units")
        block.done = pyo.Var(block.GRADIENTS, block.LANES, bounds=(0, None), doc="when the lane is done, in units")
        block.time = pyo.Var(bounds=(0, None), doc="in units")
        add_row_of_messages(block, starting, ending)
        _add_times(block, instance, messages, ending)
        check_range(block, instance.name, LARGEST_OF_EQUATIONS)
        if instance.goal == "error" or instance.error_budget is not None:
            terms = terms_of(messages.excess / error_unit(instance), list(block.sent.values()))
            block.excess = pyo.Expression(expr=linear(*terms), doc="error beyond the least, in units")
        if instance.goal == "error":
            block.objective = pyo.Expression(expr=instance.least_error / error_unit(instance) + block.excess)
            block.time_budget_is_kept = pyo.Constraint(
                expr=block.time <= time_limit(instance), doc="the time is within its budget"
            )
            return
        block.objective = pyo.Expression(expr=block.time)
        if instance.error_budget is not None:
            block.error_budget_is_kept = pyo.Constraint(
                expr=block.excess <= error_limit(instance), doc="the error is within its budget"
            )

    def start(self, block: pyo.Block, instance: CompressionProblem, solution: CompressionAnswer) -> None:
        """The messages of a plan."""
        plan = plan_of(instance, solution)
        first, chosen = 0, []
        for size in plan.buckets or (1,) * len(plan.choices):
            chosen.append((first, first + size - 1, plan.choices[first]))
            first += size
        if not all(key in block.sent for key in chosen):
            return
        for variable in block.sent.values():
            variable.set_value(0)
        for key in chosen:
            block.sent[key].set_value(1)

    def read(self, block: pyo.Block, instance: CompressionProblem) -> CompressionAnswer:
        """The plan of the messages that are sent.

        Raises
        ------
        SolverError
            If the values send some gradient not at all, twice or in part.
        """
        return OverlapTimeline().read(block, instance)

    def objective_value(self, instance: CompressionInstance, value: float) -> float:
        """Seconds or the error for as much in units."""
        return value * (time_unit_s(instance) if instance.goal == "time" else error_unit(instance))


def _add_times(block: pyo.Block, instance: CompressionInstance, messages: LaneMessages, ending: Rows) -> None:
    """Rows of lanes, and those of the time."""
    unit_s = time_unit_s(instance)
    # A time is about a thousand units.
    most = check_big_m(most_s(instance) / unit_s, 1e3, instance.name, "the time of a plan")
    ready = instance.ready_s / unit_s
    sent, lanes = list(block.sent.values()), range(len(instance.lanes))
    stage, encode = messages.stage_s / unit_s, messages.encode_s / unit_s

    def row(figures: Any, numbers: Any, *others: tuple[float, Any]) -> Any:
        """``others`` less what the messages take."""
        coefficients, variables = terms_of(-figures, [sent[k] for k in numbers], LEAST_TIME)
        return linear([*coefficients, *(c for c, _ in others)], [*variables, *(v for _, v in others)])

    @block.Constraint(block.GRADIENTS, doc="encoding adds up")
    def encoding_adds_up(b: Any, i: int) -> Any:
        before = [(-1.0, b.encoded[i - 1])] if i else []
        return row(encode[ending[i]], ending[i], (1.0, b.encoded[i]), *before) == 0.0

    block.lanes_are_passed = pyo.ConstraintList(doc="messages leave a lane after those before, and after they came")
    for i in block.GRADIENTS:
        numbers = ending[i]
        for s in lanes:
            took, used = stage[numbers, s], messages.used[numbers, s]
            came = messages.used[numbers, :s].any()
            passed, done = block.passed[i, s], block.done[i, s]
            rows = [(passed, block.passed[i, s - 1], 0.0) if s else (passed, block.encoded[i], ready[i])]
            rows += [(done, block.encoded[i], ready[i])]
            rows += [(done, block.done[i - 1, s], 0.0)] if i else []
            for later, before, least in rows:
                block.lanes_are_passed.add(row(took, numbers, (1.0, later), (-1.0, before)) >= least)
            meeting = [(passed, block.done[i - 1, s])] if i else []
            meeting += [(done, block.passed[i, s - 1])] if s and came else []
            for later, before in meeting:
                if not used.any():
                    continue
                # Without fusion one message ends here, so that M need only be with those that leave the lane out.
                figures = np.where(used, took + most, 0.0) if instance.fusion else np.where(used, took, -most)
                least = -most if instance.fusion else 0.0
                block.lanes_are_passed.add(row(figures, numbers, (1.0, later), (-1.0, before)) >= least)

    block.time_is_the_latest = pyo.ConstraintList(doc="the time is that of the last message, on every lane")
    for i in block.GRADIENTS:
        block.time_is_the_latest.add(block.time - block.passed[i, lanes[-1]] >= 0.0)
    for s in lanes:
        block.time_is_the_latest.add(block.time - block.done[instance.size - 1, s] >= 0.0)
