"""The answer to a deployment instance: for each group of operators its devices, its mode and its synchronisation."""

from itertools import pairwise
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from ddlopt.models.contracts import Part
from ddlopt.models.deployment.family import DeploymentAnswer

Mode = Literal["all_reduce", "parameter_server", "model_parallel"]
Split = Literal["even", "speed"]


class GroupPlan(Part):
    """What is decided for a group of operators.

    Parameters
    ----------
    device_groups : tuple of int
        Where it runs, ascending.
    mode : {"all_reduce", "parameter_server", "model_parallel"}
        In the first two every device of ``device_groups`` has a replica of all its operators, which works on a part
        of the batch; gradients are reduced by one collective operation an operator, or are sent to one of the replicas
        and back. With ``model_parallel`` each operator runs on one device, for the whole batch, and nothing is reduced.
        On a single device the modes are the same.
    split : {"even", "speed"}
        Replicas have equal parts of the batch, or parts in proportion to how fast their device type computes all
        operators for the whole batch.
    devices : tuple of int, optional
        With ``model_parallel``: the device of each operator of the group, in the order of
        ``DeploymentInstance.members``.
    """

    device_groups: tuple[int, ...]
    mode: Mode
    split: Split = "even"
    devices: tuple[int, ...] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.device_groups or any(a >= b for a, b in pairwise(self.device_groups)):
            raise ValueError(f"device_groups is {list(self.device_groups)}; name at least one, each once, ascending")
        if (self.devices is not None) != (self.mode == "model_parallel"):
            raise ValueError("devices is given with mode 'model_parallel', and with no other")
        return self


class Deployment(DeploymentAnswer):
    """A plan for each group, and the operators that every replica computes for the whole batch.

    Parameters
    ----------
    groups : tuple of GroupPlan
        One for each operator group, in order.
    duplicated : tuple of int
        Operators, ascending, of groups in mode ``all_reduce`` on two devices or more, that each replica computes for
        the whole batch: its inputs are sent to every replica in full, and its gradient needs no all-reduce (sufficient
        factors).
    """

    kind: ClassVar[str] = "deployment"

    problem: Literal["plan"] = "plan"
    groups: tuple[GroupPlan, ...]
    duplicated: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if any(a >= b for a, b in pairwise(self.duplicated)):
            raise ValueError(f"duplicated is {list(self.duplicated)}; name each operator once, ascending")
        return self
