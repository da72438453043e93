"""Branch and price, as a method."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.certificates.deployment.partition.device_sets.cases import refuses_sets
from ddlopt.certificates.deployment.partition.device_sets.states import walk_of
from ddlopt.frontier.deployment.partition.device_sets.tree import Tree
from ddlopt.frontier.deployment.partition.opening import opening
from ddlopt.models.deployment.partition.contraction import contracted
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance
from ddlopt.models.errors import InfeasibleError, NoSolutionError, NotApplicableError, SolverError
from ddlopt.models.tolerances import BOUND_MARGIN
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.partition.linear import objective_of
from ddlopt.solvers.deployment.partition.search import PartitionSearch
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

MOST_STATES = 1_000
"""Of a walk along all blocks: those of cases have more."""
_OF_GAP = 0.9
"""Part of the gap asked for by which a partition must be better to be sought."""


@dataclass(frozen=True)
class DeviceSets(CertifiedMethod, uses=("seed", "start")):
    r"""Every device has one of the sets of blocks that it may have (ours).

    With columns :math:`z_S` for the sets whose load is at most a limit and that fit, Dantzig and Wolfe's relaxation of
    a partition knows loads and memory of each device alone, where an integer program by blocks spreads them over all.
    Sets are priced by labels: along a walk through the blocks, where of each output that is begun it matters whether
    its pins so far are inside, outside or both, a label is a set of the blocks so far with its load, its memory and its
    value; of those of one state one may dominate another, and multipliers of load and memory tell which can still
    become better than a set that is known. Prices are smoothed. Cases are pairs of blocks together or apart (Ryan and
    Foster), and where no pair is left, a block's kind of device.

    The limit is what a better partition than the best one so far must keep, so that a case is closed when its
    relaxation has no solution; prices that show it make a certificate
    (:class:`~ddlopt.certificates.deployment.partition.device_sets.certificate.SetsCertificate`).

    References
    ----------
    D. Ryan, B. Foster, "An integer programming approach to scheduling", in Computer Scheduling of Public Transport,
    1981; C. Barnhart et al., "Branch-and-price: column generation for solving huge integer programs", Operations
    Research 46, 1998; P. Wentges, "Weighted Dantzig-Wolfe decomposition for linear mixed-integer programming",
    International Transactions in Operational Research 4, 1997.
    """

    name: ClassVar[str] = "device-sets"
    proves_infeasible: ClassVar[bool] = True
    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.frontier.deployment.partition.device_sets.kernels",
        *PartitionSearch.kernels,
    )

    def refuses(self, instance: Any) -> str | None:
        """Latency, contiguous instances, passes apart; outputs that reach across too many others."""
        reason = refuses_sets(instance)
        if reason is not None:
            return reason
        blocks = contracted(instance)
        if walk_of(blocks.count, [(pins, 1) for pins in blocks.pins], (), MOST_STATES) is None:
            return f"sets of blocks have more than {MOST_STATES} states along the network; use max-load"
        return None

    def find(self, instance: PartitionInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best partition found, and what is proven of all.

        Raises
        ------
        InfeasibleError
            If there is none: every partition gives each device a set of nodes that fits, and no choice of such sets
            covers the nodes, whatever branch of the tree is taken.
        NoSolutionError
            If none was found in the time.
        """
        solution, value_s = opening(instance, seed, clock, start, PartitionSearch())
        if value_s is not None:
            clock.report(value_s)
            if value_s <= 0:
                return MethodOutput(solution, {}, bound=0.0)
        gap = _OF_GAP * limits.gap
        tree = Tree(instance, _enough_s(instance) if value_s is None else value_s * (1 - gap), clock)
        if solution is not None:
            tree.use(tree.blocks.devices_of_blocks(solution.devices))
        message = ""
        try:
            while (devices := tree.next()) is not None:
                found = Partition(instance=instance.name, devices=tree.blocks.devices_of_nodes(devices))
                found_s = objective_of(instance, found)
                if found_s is not None and (value_s is None or found_s < value_s):
                    solution, value_s = found, found_s
                    clock.report(value_s, tree.bound_s)
                    if value_s <= 0:
                        return MethodOutput(solution, {}, bound=0.0)
                # What rounding lets pass is no better than the limit.
                least_s = tree.limit_s * (1 - BOUND_MARGIN)
                tree.lower(least_s if value_s is None else min(least_s, value_s * (1 - gap)))
        except (NotApplicableError, SolverError) as stopped:
            message = str(stopped)
        if solution is None or value_s is None:
            if tree.done:
                raise InfeasibleError(f"'{instance.name}': nodes do not fit on the devices, however they are placed")
            raise NoSolutionError(message or "no partition was found in the time")
        clock.report(value_s, tree.bound_s)
        details = {"cases": float(tree.cases), "sets": float(tree.sets)}
        return MethodOutput(solution, details, bound=tree.bound_s, message=message)


def _enough_s(instance: PartitionInstance) -> float:
    """More than any load."""
    times = (time for node in instance.nodes for time in (node.accelerator_s, node.processor_s, node.transfer_s))
    return 2 * sum(time for time in times if time is not None) or 1.0
