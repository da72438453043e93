"""Proofs of plans for the next forward pass: see :mod:`ddlopt.certificates.compression.label_proof`.

A wire that may be interrupted is a timeline on which each gradient is ready later by its tail
(:func:`~ddlopt.models.compression.forward.bounds.priority_timeline`). Labels prove that no plan on it, and so no order
and no parts, is better than the claim.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from ddlopt.certificates.compression.label_proof.certificate import LabelCertificate
from ddlopt.certificates.compression.label_proof.lanes import Lanes
from ddlopt.certificates.compression.timeline.certificate import lanes_of_timeline
from ddlopt.models.compression.forward.instance import ForwardInstance


@dataclass(frozen=True)
class ForwardCertificate(LabelCertificate):
    """A proof that no plan for the next forward pass is better than ``claim``."""

    def lanes(self, instance: ForwardInstance) -> Lanes:
        """The instance and the claim in whole numbers; tails are added up as fractions."""
        tails = accumulate(map(Fraction, instance.forward_s))
        return lanes_of_timeline(instance.timeline, self.claim, list(tails))
