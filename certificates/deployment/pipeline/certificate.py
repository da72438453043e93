"""The file of a proof for pipelines, read as if an enemy had written it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.certificates.deployment.pipeline.kernels import extend, room_for
from ddlopt.certificates.deployment.pipeline.tables import tables_of
from ddlopt.certificates.own import OwnCertificate
from ddlopt.models.deployment.pipeline.instance import PipelineInstance
from ddlopt.models.errors import RefutedError

_BLOCK = 64
"""Ideals between two looks at the clock: of thousands, each takes milliseconds."""


@dataclass(frozen=True)
class PipelineCertificate(OwnCertificate):
    r"""A proof that in every plan some stage takes ``claim`` seconds a sample or more.

    The stages of a plan, from the last one to the first, lead from the whole network to nothing, through *ideals* (sets
    of layers with all that come before them): no edge leads back. The checker lists the ideals itself. With
    :math:`F(I, D)` the fewest devices of stages behind the ideal I that have D replicas in all and may take less than
    the claim each,

    .. math::
        F(I, D + d) = \min_{J \supset I,\ t,\ d} \{ F(J, D) + d t :
        \text{a stage } J \setminus I \text{ with degrees t, d and } \lceil (D + d) / d \rceil
        \text{ samples in flight may take less} \} .

    There is no plan below the claim if :math:`F(\emptyset, D)` is above the number of devices for every D. *May take*
    is asked of every stage in whole numbers (:mod:`~ddlopt.certificates.deployment.pipeline.kernels`): times and
    memory are rounded down (:mod:`~ddlopt.certificates.deployment.pipeline.tables`), so that a stage that does take
    less is never left out. What is lost is some :math:`2^{-30}` of the claim: the optimum itself is not proven, and
    what is just below it is.

    Two rules keep the table small; they leave out no plan. Of states with as few replicas *and* devices one is enough,
    because fewer samples are in flight then. And stages ahead of an ideal need devices, too: those with which its
    layers, with the degrees that suit each best, take less than the claim.
    """

    format: ClassVar[str] = "ddlopt pipeline certificate"
    kind: ClassVar[str] = "stages"
    says: ClassVar[str] = "of the instance, by all sequences of stages in whole numbers"

    @classmethod
    def fault(cls, data: dict[str, Any]) -> str | None:
        """There are no own fields."""
        return None

    def check(self, instance: PipelineInstance, expired: Callable[[], bool]) -> int:
        """Raise RefutedError unless the claim is proven; how many stages with degrees were asked about.

        Raises
        ------
        NotApplicableError
            If there are too many ideals, or numbers might overflow.
        """
        if self.claim <= 0:
            return 0
        tables = tables_of(instance, self.claim)
        room, cases = room_for(tables), 0
        need = np.full((len(tables.words), tables.most + 1), instance.devices + 1, dtype=np.int32)
        need[-1, 0] = 0
        for high in range(len(need) - 1, 0, -_BLOCK):
            if expired():
                return cases
            cases += extend(tables, room, need, max(1, high - _BLOCK + 1), high)
        if need[0].min() <= instance.devices:
            told = f"stages that may take less than the claim of {float(self.claim):.12g} s each"
            raise RefutedError(f"a plan of '{instance.name}' may have {told}")
        return cases
