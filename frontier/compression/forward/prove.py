"""Writes proofs for the next forward pass: those of the timeline of a wire that may be interrupted."""

from collections.abc import Callable
from fractions import Fraction

from ddlopt.certificates.compression.forward.certificate import ForwardCertificate
from ddlopt.certificates.compression.label_proof.certificate import LabelCertificate
from ddlopt.frontier.compression.timeline.prove import prove_labels
from ddlopt.models.compression.forward.bounds import priority_timeline
from ddlopt.models.compression.forward.instance import ForwardInstance, ForwardPlan


def prove(
    instance: ForwardInstance, solution: ForwardPlan, target: Fraction, expired: Callable[[], bool]
) -> LabelCertificate | None:
    """The certificate that proves ``target``; None where there is none in time, or orders and parts matter."""
    return prove_labels(ForwardCertificate, instance, target, expired, priority_timeline(instance))
