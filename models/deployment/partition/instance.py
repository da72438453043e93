"""Partition of a graph of operators over accelerators and processors, for throughput or for latency."""

from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ddlopt.models.contracts import Part
from ddlopt.models.deployment.family import DeploymentAnswer, DeploymentProblem
from ddlopt.models.sizes import require_memory
from ddlopt.models.tolerances import let_pass

Goal = Literal["throughput", "latency"]


class PartitionNode(Part):
    """An operator or a layer, in its forward or in its backward pass.

    Parameters
    ----------
    name : str
    accelerator_s, processor_s : float or None
        Seconds that it takes on an accelerator and on a processor; None where it cannot run there.
    transfer_s : float
        Seconds that an accelerator takes to send its output to main memory, or to fetch it from there.
    memory_bytes : float
        Of an accelerator that has it.
    backward : bool
        Whether it belongs to the backward pass.
    colour : int, optional
        Nodes of one colour are on one device.
    """

    name: str
    accelerator_s: float | None = Field(default=None, ge=0)
    processor_s: float | None = Field(default=None, ge=0)
    transfer_s: float = Field(default=0.0, ge=0)
    memory_bytes: float = Field(default=0.0, ge=0)
    backward: bool = False
    colour: int | None = None


class PartitionInstance(DeploymentProblem):
    r"""Which accelerator or processor every node of a graph has.

    *Throughput.* Samples go through the devices in a pipeline, so the slowest of them counts. Let S be the nodes on a
    device, and :math:`p_u, c_u` the time of node u and of the transfer of its output. A processor, which works in main
    memory, is busy for :math:`\sum_{u \in S} p_u`; an accelerator fetches what it needs and sends what others need,
    each output once:

    .. math:: \sum_{u \in S} p_u + \sum_{u \notin S,\ u \to S} c_u + \sum_{u \in S,\ u \to V \setminus S} c_u .

    The largest load is minimised. With ``separate_passes`` it is the largest load of forward nodes plus the largest
    load of backward nodes, where a transfer belongs to the pass of the node whose output it is.

    With ``contiguous`` the devices must have an order in which no forward edge leads back: the forward pass visits each
    once. Nodes of a colour without forward nodes stand where their backward edges, reversed, put them.

    *Latency.* One sample counts. Nodes on processors run one by one, each as soon as all that it needs is there, and
    there are as many processors as that takes. An accelerator runs up to ``subgraphs`` sets of nodes, one after the
    other; a set starts when everything that it fetches is there, is busy for the sum above, and only then others may
    have what it sends. The time when all is done is minimised.

    Parameters
    ----------
    nodes : tuple of PartitionNode
        Of the graph of operators.
    edges : tuple of (int, int)
        From the node that makes an output to one that needs it; acyclic, none from a backward to a forward node.
    accelerators, processors : int
        How many there are; devices are counted through the accelerators first. With goal ``latency`` any number of
        processors, if at least 1, is one pool, which is the device after the accelerators.
    memory_bytes : float
        Of each accelerator.
    goal : {"throughput", "latency"}
        The largest load of a device, or the latency of one sample.
    contiguous, separate_passes : bool
        For throughput.
    subgraphs : int
        For latency.

    References
    ----------
    J. Tarnawski, A. Phanishayee, N. Devanur, D. Mahajan, F. Nina Paravecino, "Efficient algorithms for device placement
    of DNN graph operators", NeurIPS 2020, and the released code (msr-fiddle/dnn-partitioning), whose rules these are.
    """

    kind: ClassVar[str] = "partition instance"

    problem: Literal["partition"] = "partition"
    nodes: tuple[PartitionNode, ...] = Field(min_length=1)
    edges: tuple[tuple[int, int], ...] = ()
    accelerators: int = Field(ge=0)
    processors: int = Field(default=0, ge=0)
    memory_bytes: float = Field(gt=0)
    goal: Goal = "throughput"
    contiguous: bool = False
    separate_passes: bool = False
    subgraphs: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.accelerators + self.processors == 0:
            raise ValueError("accelerators and processors are both 0; there must be a device")
        devices = self.accelerators + self.processors
        require_memory(f"{devices} devices for {len(self.nodes)} nodes", 64.0 * devices * len(self.nodes))
        self._check_goal()
        self._check_edges()
        for place, node in enumerate(self.nodes):
            self._check_node(place, node)
        return self

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @property
    def devices(self) -> int:
        """Number of devices; the pool of processors is one where latency counts."""
        if self.goal == "latency":
            return self.accelerators + min(1, self.processors)
        return self.accelerators + self.processors

    @cached_property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """Nodes that need the output of each node, each once, ascending."""
        found: list[set[int]] = [set() for _ in self.nodes]
        for maker, user in self.edges:
            found[maker].add(user)
        return tuple(tuple(sorted(users)) for users in found)

    @cached_property
    def colours(self) -> tuple[tuple[int, ...], ...]:
        """Nodes that must be together, by their first node; a node without a colour is alone."""
        found: dict[object, list[int]] = {}
        for place, node in enumerate(self.nodes):
            found.setdefault(("alone", place) if node.colour is None else node.colour, []).append(place)
        return tuple(map(tuple, found.values()))

    def _check_goal(self) -> None:
        if self.goal == "throughput" and self.subgraphs != 1:
            raise ValueError(f"subgraphs is {self.subgraphs}; it is for goal 'latency', leave it at 1 for throughput")
        if self.goal == "throughput":
            return
        for name in ("contiguous", "separate_passes"):
            if getattr(self, name):
                raise ValueError(f"{name} is set; it is for goal 'throughput', leave it out for latency")
        for place, node in enumerate(self.nodes):
            if node.backward:
                raise ValueError(
                    f"nodes[{place}] ('{node.name}') is backward; latency is that of inference, which has forward "
                    "nodes only"
                )

    def _check_edges(self) -> None:
        count = len(self.nodes)
        before: dict[int, set[int]] = {}
        for place, (maker, user) in enumerate(self.edges):
            for node in (maker, user):
                if not 0 <= node < count:
                    raise ValueError(f"edges[{place}] names node {node}, but there are {count} nodes (0..{count - 1})")
            if self.nodes[maker].backward and not self.nodes[user].backward:
                raise ValueError(
                    f"edges[{place}] leads from the backward node '{self.nodes[maker].name}' to the forward node "
                    f"'{self.nodes[user].name}'; the backward pass comes after the forward pass"
                )
            before.setdefault(user, set()).add(maker)
        try:
            TopologicalSorter(before).prepare()
        except CycleError as problem:
            cycle = " -> ".join(self.nodes[node].name for node in problem.args[1])
            raise ValueError(f"the nodes form a cycle: {cycle}; a graph of operators must be acyclic") from None

    def _check_node(self, place: int, node: PartitionNode) -> None:
        if node.processor_s is not None and self.processors:
            return
        if node.accelerator_s is None or not self.accelerators:
            raise ValueError(
                f"nodes[{place}] ('{node.name}') runs nowhere: it needs accelerator_s with accelerators > 0, or "
                "processor_s with processors > 0"
            )
        if node.memory_bytes > let_pass(self.memory_bytes):
            raise ValueError(
                f"nodes[{place}] ('{node.name}') needs {node.memory_bytes:.15g} bytes of an accelerator, which has "
                f"memory_bytes {self.memory_bytes:.15g}, and it cannot run on a processor"
            )


class Partition(DeploymentAnswer):
    """The device of each node.

    Parameters
    ----------
    devices : tuple of int
        Accelerators have the first numbers, then come the processors (latency: their pool).
    subgraphs : tuple of int, optional
        For latency with several subgraphs an accelerator: which of its device's each node belongs to, in the order in
        which they run; 0 for nodes on processors. Empty: all 0.
    """

    kind: ClassVar[str] = "partition"

    problem: Literal["partition"] = "partition"
    devices: tuple[int, ...]
    subgraphs: tuple[int, ...] = ()


def refusal(instance: Any, goal: Goal) -> str | None:
    """Why an instance is no partition with this goal; None if it is."""
    if isinstance(instance, PartitionInstance) and instance.goal == goal:
        return None
    return f"it partitions graphs of operators for {goal}"
