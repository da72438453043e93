"""Proofs of plans on the timeline: see :mod:`ddlopt.models.compression.label_proof`."""

from dataclasses import dataclass
from fractions import Fraction

from ddlopt.models.compression.label_proof.certificate import LabelCertificate
from ddlopt.models.compression.label_proof.wire import Option, Wire, most_of, wire_of
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.errors import RefutedError


@dataclass(frozen=True)
class TimelineCertificate(LabelCertificate):
    """A proof that no plan on the timeline is better than ``claim``."""

    def wire(self, instance: CompressionInstance) -> Wire:
        """The instance and the claim in whole numbers; RefutedError where there are lanes."""
        if instance.lanes:
            raise RefutedError("labels know one wire, and there are lanes")
        menus: list[list[Option]] = [
            [
                (
                    option.label,
                    Fraction(option.encode_s),
                    Fraction(option.wire_s) + Fraction(option.decode_s),
                    Fraction(option.launch_s),
                    Fraction(option.error),
                )
                for option in menu
            ]
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
        return wire_of(
            [Fraction(gradient.ready_s) for gradient in instance.gradients],
            [menus[gradient.menu] for gradient in instance.gradients],
            ends,
            *most_of(instance.goal, self.claim, instance.error_budget, instance.time_budget_s),
            instance.goal == "time",
        )
