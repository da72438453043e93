"""Proofs of plans on the timeline: see :mod:`ddlopt.certificates.compression.label_proof`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ddlopt.certificates.compression.label_proof.certificate import LabelCertificate
from ddlopt.certificates.compression.label_proof.lanes import Lanes, Option, Stages, lanes_of, most_of
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.compression.timeline.instance import Option as TimelineOption


@dataclass(frozen=True)
class TimelineCertificate(LabelCertificate):
    """A proof that no plan on the timeline is better than ``claim``."""

    def lanes(self, instance: CompressionInstance) -> Lanes:
        """The instance and the claim in whole numbers."""
        return lanes_of_timeline(instance, self.claim, [Fraction(0)] * instance.size)


def lanes_of_timeline(instance: CompressionInstance, claim: Fraction, tails: Sequence[Fraction]) -> Lanes:
    """The same where each gradient is ready later by what stands in ``tails``."""
    places = {lane: place for place, lane in enumerate(instance.lanes)}
    menus: list[list[Option]] = [
        [(option.label, Fraction(option.encode_s), _stages(option, places), Fraction(option.error)) for option in menu]
        for menu in instance.menus
    ]
    ends, largest = [], instance.largest_bucket_bytes
    for first in range(instance.size):
        end, held = first + 1, 4 * instance.gradients[first].elements
        while instance.fusion and end < instance.size:
            held += 4 * instance.gradients[end].elements
            if largest is not None and held > largest:
                break
            end += 1
        ends.append(end)
    return lanes_of(
        [Fraction(gradient.ready_s) + tail for gradient, tail in zip(instance.gradients, tails, strict=True)],
        [menus[gradient.menu] for gradient in instance.gradients],
        ends,
        *most_of(instance.goal, claim, instance.error_budget, instance.time_budget_s),
        instance.goal == "time",
        max(1, len(places)),
    )


def _stages(option: TimelineOption, places: Mapping[str, int]) -> Stages:
    """On each lane that it passes; on the wire where there are none."""
    if places:
        return {places[each.lane]: (Fraction(each.busy_s), Fraction(each.launch_s)) for each in option.stages}
    return {0: (Fraction(option.wire_s) + Fraction(option.decode_s), Fraction(option.launch_s))}
