"""Writes proofs of levels: those of the timeline on which each level is an option."""

from collections.abc import Callable
from fractions import Fraction

from ddlopt.certificates.compression.label_proof.certificate import LabelCertificate
from ddlopt.certificates.compression.levels.certificate import LevelCertificate
from ddlopt.frontier.compression.timeline.prove import prove_labels
from ddlopt.models.compression.levels.instance import LevelInstance, LevelPlan


def prove(
    instance: LevelInstance, solution: LevelPlan, target: Fraction, expired: Callable[[], bool]
) -> LabelCertificate | None:
    """The certificate that proves ``target``; None where there is none in time."""
    return prove_labels(LevelCertificate, instance, target, expired)
