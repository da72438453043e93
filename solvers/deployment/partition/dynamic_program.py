"""The dynamic program over ideals, as a method."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.deployment.partition.blocks import Blocks, as_contiguous
from ddlopt.models.deployment.partition.contraction import contracted
from ddlopt.models.deployment.partition.ideals.ideals import ideals_of
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance, refusal
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.models.tolerances import ROUNDING, let_pass_at_most
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.partition.chains import Chain, best_chain, no_limit_s
from ddlopt.solvers.deployment.partition.linear import Linear, objective_of
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

MOST_IDEALS = 200_000
"""Beyond, pairs take longer than anybody waits."""


@dataclass(frozen=True)
class IdealProgram(CertifiedMethod, uses=("seed",)):
    r"""The best contiguous partition for throughput, over all ideals.

    An ideal is a set of blocks with all that come before them in the order; a contiguous piece is what an ideal J has
    beyond an ideal I within it. The least largest load of J on a accelerators and c processors is

    .. math::
        L(J, a, c) = \min_{I \subset J}\, \min\bigl\{\max\{L(I, a - 1, c), \text{load}(J \setminus I)\},\
        \max\{L(I, a, c - 1), p(J \setminus I)\}\bigr\}

    as in the paper, whose code lists all pairs and adds up each load anew. Ours (1) looks only for what is better than
    the best cuts of lines; (2) passes over ideals that leave more work than the devices which are left do in that time,
    where a processor takes off what a fractional knapsack of that time holds; (3) finds a load from sums of I and of J:
    the outputs that a piece moves are those that I cuts and those that J cuts, less what both cut, once if it has pins
    in the piece and twice if not; (4) contracts blocks without weight
    (:mod:`~ddlopt.models.deployment.partition.contraction`).

    Where the instance is not contiguous, contiguous partitions are its scope.

    Parameters
    ----------
    most_ideals : int
        It refuses instances with more.

    References
    ----------
    J. Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators", NeurIPS 2020.
    """

    most_ideals: int = MOST_IDEALS

    name: ClassVar[str] = "ideals"
    proves_infeasible: ClassVar[bool] = True
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.deployment.partition.ideals.kernels",)

    def refuses(self, instance: Any) -> str | None:
        """Latency, passes apart, too many ideals."""
        reason = refusal(instance, "throughput")
        if reason is not None:
            return reason
        if instance.separate_passes:
            return "its recursion has one largest load, and the instance counts passes apart"
        blocks = contracted(as_contiguous(instance))
        if ideals_of(blocks.count, blocks.order, self.most_ideals) is None:
            return f"the graph has more than {self.most_ideals} ideals; use max-load"
        return None

    def find(self, instance: PartitionInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The optimum, or the best cuts of lines if the time is up before.

        Raises
        ------
        InfeasibleError
            If there is no contiguous partition, and the instance asks for one: a contiguous partition is a chain of
            ideals, and the program went through all chains whose pieces fit.
        """
        ordered = as_contiguous(instance)
        blocks = contracted(ordered)
        try:
            line, _ = Linear().answer(instance, seed, clock, None)
        except NoSolutionError:
            line = None
        solution = line if isinstance(line, Partition) else None
        value = None if solution is None else objective_of(ordered, solution)
        bits = ideals_of(blocks.count, blocks.order, self.most_ideals)
        assert bits is not None
        details = {"ideals": float(len(bits))}
        limit_s = no_limit_s(blocks) if value is None else value * (1 - ROUNDING)
        try:
            chain = best_chain(ordered, blocks, bits, limit_s, clock, let_pass_at_most(instance.memory_bytes))
        except NoSolutionError as late:
            if solution is None:
                raise
            return MethodOutput(solution, details, message=str(late))
        if chain is not None:
            value, details["pairs"] = chain.load_s, float(chain.pairs)
            if objective_of(ordered, _partition(instance, blocks, chain)) is None:
                # A device has more than the check lets pass, by a hair: the load is a bound, and no more.
                chain = best_chain(ordered, blocks, bits, limit_s)
            if chain is not None:
                solution = _partition(instance, blocks, chain)
            elif solution is None:
                raise NoSolutionError("no partition fits but for rounding")
        if solution is None:
            if not instance.contiguous:
                raise NoSolutionError("there is no contiguous partition")
            raise InfeasibleError(f"'{instance.name}' has no contiguous partition that fits")
        clock.report(value, value if instance.contiguous else None)
        if instance.contiguous:
            return MethodOutput(solution, details, bound=value)
        return MethodOutput(solution, details, scope="contiguous", scope_bound=value)


def _partition(instance: PartitionInstance, blocks: Blocks, chain: Chain) -> Partition:
    return Partition(instance=instance.name, devices=blocks.devices_of_nodes(chain.devices))
