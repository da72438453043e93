"""Lower bounds on the time of every plan, without a solver: those of the timeline with later ready times."""

from fractions import Fraction
from itertools import accumulate

from ddlopt.models.compression.forward.instance import ForwardInstance
from ddlopt.models.compression.timeline.bounds import timeline_bound
from ddlopt.models.compression.timeline.instance import CompressionInstance


def priority_timeline(instance: ForwardInstance) -> CompressionInstance:
    r"""The timeline of a wire that may be interrupted: gradient i is ready later by the tail that follows it.

    With the tail :math:`q_i = f_1 + \dots + f_i`, the occupation :math:`c_i = h_i + w_i + d_i` and any i: of the
    gradients :math:`k \ge i` none can be sent before :math:`P_i`, as encoding ends in their order. They take
    :math:`\sum_{k \ge i} c_k` or more, in however many parts, and whichever is there last has a tail of at least
    :math:`q_i`. So every plan takes at least

    .. math:: \max_i \bigl(R_i + q_i + \textstyle\sum_{k \le i} e_k + \sum_{k \ge i} c_k\bigr),

    and that is the time of the timeline on which gradient i is ready at :math:`R_i + q_i`. It is attained if the wire
    always sends, of what is encoded, the gradient that is needed first, and may be interrupted at no cost (J. Jackson's
    preemptive schedule). In the order of the backward pass the time is :math:`q_n` more than that of the timeline as it
    is, since the gradient sent last is needed first.
    """
    timeline = instance.timeline
    moved = tuple(
        gradient.model_copy(update={"ready_s": gradient.ready_s + tail})
        for gradient, tail in zip(timeline.gradients, instance.tails_s.tolist(), strict=True)
    )
    return CompressionInstance(
        name=timeline.name,
        gradients=moved,
        menus=timeline.menus,
        cluster=timeline.cluster,
        error_budget=timeline.error_budget,
    )


def forward_bound(instance: ForwardInstance) -> float:
    """The bound of :func:`~ddlopt.models.compression.timeline.bounds.timeline_bound` for :func:`priority_timeline`."""
    return timeline_bound(priority_timeline(instance))


def exact_forward_bound(instance: ForwardInstance) -> Fraction:
    """Its closed form, the cheapest of everything, in rational numbers."""
    timeline = instance.timeline
    menus = [
        [(Fraction(o.encode_s), Fraction(o.launch_s) + Fraction(o.wire_s) + Fraction(o.decode_s)) for o in menu]
        for menu in timeline.menus
    ]
    own = [menus[gradient.menu] for gradient in timeline.gradients]
    after = sum((min(wire for _, wire in menu) for menu in own), Fraction(0))
    before = best = Fraction(0)
    tails = accumulate(map(Fraction, instance.forward_s))
    for gradient, menu, tail in zip(timeline.gradients, own, tails, strict=True):
        after -= min(wire for _, wire in menu)
        both = min(encode + wire for encode, wire in menu)
        best = max(best, Fraction(gradient.ready_s) + tail + before + both + after)
        before += min(encode for encode, _ in menu)
    return best
