"""The two lanes, computation and wire: what checks of plans and of levels share.

Messages are sent in an order that answers give, so that times are sums and maxima: none jumps where two are the same.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from ddlopt.models.contracts import Number, Violation
from ddlopt.models.tolerances import let_pass

NumberType = type[Fraction] | type[float]


class Message(NamedTuple):
    """What is sent at once: gradients ``first .. last``, ready on the computation's lane, then on the wire.

    ``encoded_s``: when the last of them is encoded. ``start_s``, ``end_s``: when the wire is theirs; of several lanes
    when they enter the first and leave the last, with ``lanes`` (name, start_s, end_s) in between.
    """

    first: int
    last: int
    encoded_s: Number
    start_s: Number
    end_s: Number
    lanes: tuple[tuple[str, Number, Number], ...] = ()


def broken_budgets(
    error_budget: float | None, time_budget_s: float | None, time: Number, error: Number, number: NumberType
) -> list[Violation]:
    """Budgets that an error and a time exceed by more than rounding."""
    wrong = []
    for kind, used, budget in (
        ("error_budget_is_kept", error, error_budget),
        ("time_budget_is_kept", time, time_budget_s),
    ):
        if budget is not None and used > let_pass(number(budget)):
            wrong.append(Violation(kind, "all gradients", used, number(budget)))
    return wrong


def details_of(sent: Sequence[Message], error: Number, encode: Number, backward: Number) -> dict[str, Number]:
    """Figures of an answer: what encoding takes, when the backward pass ends, how busy the wire is."""
    time = max(message.end_s for message in sent)
    return {
        "time_s": time,
        "error": error,
        "backward_s": backward,
        "encode_s": encode,
        "wire_busy_s": sum((message.end_s - message.start_s for message in sent), 0 * time),
        "exposed_s": time - backward,
        "messages": len(sent),
    }
