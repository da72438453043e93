"""Proofs of levels, each of which is an option: see :mod:`ddlopt.certificates.compression.label_proof`."""

from dataclasses import dataclass
from fractions import Fraction

from ddlopt.certificates.compression.label_proof.certificate import LabelCertificate
from ddlopt.certificates.compression.label_proof.lanes import Lanes, Option, lanes_of, most_of
from ddlopt.models.compression.levels.instance import ExponentialCurve, GradedGradient, LevelInstance


@dataclass(frozen=True)
class LevelCertificate(LabelCertificate):
    """A proof that no levels are better than ``claim``."""

    def lanes(self, instance: LevelInstance) -> Lanes:
        """The instance and the claim in whole numbers."""
        return lanes_of(
            [Fraction(gradient.ready_s) for gradient in instance.gradients],
            [_menu(gradient) for gradient in instance.gradients],
            range(1, len(instance.gradients) + 1),
            *most_of(instance.goal, self.claim, instance.error_budget, instance.time_budget_s),
            instance.goal == "time",
        )


def _menu(gradient: GradedGradient) -> list[Option]:
    curve = gradient.curve
    if isinstance(curve, ExponentialCurve):
        errors = {level: Fraction(curve.scale) / 4**level for level in curve.allowed}
    else:
        errors = {level: Fraction(error) for level, error in zip(curve.levels, curve.errors, strict=True)}
    return [
        (
            str(level),
            Fraction(gradient.encode_s) + Fraction(gradient.encode_s_per_level) * level,
            {0: (Fraction(gradient.wire_s_per_level) * level, Fraction(gradient.launch_s))},
            errors[level],
        )
        for level in curve.allowed
    ]
