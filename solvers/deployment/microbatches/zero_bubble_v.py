"""ZB-V: two chunks a device in a V, whose order has no bubble with unit times in the memory of 1F1B."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.deployment.microbatches.ticks import Kind, Ticks, exact_ticks
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.deployment.microbatches.handcrafted import Handcrafted
from ddlopt.solvers.deployment.microbatches.list_scheduling import rules, schedule


@dataclass(frozen=True)
class ZeroBubbleV(Handcrafted):
    """ZB-V: the order of a V in the memory of 1F1B, made with unit times.

    The paper draws it; here it is what the first rule of list scheduling gives where all passes take as long and each
    device holds 2 p micro-batches of a chunk. With unit times that has no bubble, as theirs.

    References
    ----------
    P. Qi, X. Wan, N. Amar, M. Lin, "Pipeline parallelism with controllable memory", NeurIPS 2024.
    """

    name: ClassVar[str] = "zb-v"

    def refuses(self, instance: Any) -> str | None:
        """Other chunks than a V of one chain; W within B."""
        p = instance.devices
        places = [instance.chunks[chunk].device for chunk in instance.chains[0]]
        if len(instance.chains) > 1 or len(places) != 2 * p or places != [*range(p), *reversed(range(p))]:
            return "it needs one chain with two chunks a device, there and back"
        if any(chunk.weights_s is None for chunk in instance.chunks):
            return "it needs W as passes of their own"
        return None

    def words(self, ticks: Ticks) -> list[list[Kind]]:
        """Of every device.

        Raises
        ------
        NoSolutionError
            If the rule finds none.
        """
        instance = ticks.instance
        unit = {"forward_s": 1.0, "backward_s": 1.0, "weights_s": 1.0, "held_bytes": 1.0, "freed_bytes": 0.5}
        alike = exact_ticks(
            instance.changed(
                chunks=[chunk.model_copy(update=unit) for chunk in instance.chunks],
                edges=[edge.model_copy(update={"forward_s": 0.0, "backward_s": 0.0}) for edge in instance.edges],
                memory_bytes=(2.0 * instance.devices,) * instance.devices,
            )
        )
        found = schedule(alike, rules(alike)[0])
        if found is None:
            raise NoSolutionError("the rule comes to a stop")
        return found
