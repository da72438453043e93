"""Lower bounds on the iteration time of every plan, without a solver."""

from weakref import WeakKeyDictionary

from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.prices.prices import PricedBound, best_prices
from ddlopt.models.codesign.tables import Tables, tables_of
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import ROUNDING

_KNOWN: WeakKeyDictionary[Tables, PricedBound] = WeakKeyDictionary()


def lower_bound(instance: CodesignInstance) -> float:
    """Iteration time in seconds that no plan can beat: :func:`~ddlopt.models.codesign.prices.prices.best_prices`.

    It is calculated once for an instance in memory.

    Raises
    ------
    InfeasibleError
        If some layer fits into the memory of no server whichever its strategy, or all of them do not fit together: the
        leanest strategies of all take more than all servers have, and every plan takes no less.
    """
    return priced_bound(instance).value_s


def priced_bound(instance: CodesignInstance) -> PricedBound:
    """The same with prices, and with the strategies that look best at them."""
    refuse_too_large(instance)
    tables = tables_of(instance)
    if tables not in _KNOWN:
        _KNOWN[tables] = best_prices(tables)
    return _KNOWN[tables]


def least_memory_bytes(instance: CodesignInstance) -> float:
    """Memory of all servers together that the leanest strategy of every layer takes."""
    return sum(
        min(strategy.memory_bytes * len(instance.layouts[strategy.writes].servers) for strategy in layer.strategies)
        for layer in instance.layers
    )


def fits(instance: CodesignInstance) -> bool:
    """Whether :func:`refuse_too_large` lets it pass."""
    try:
        refuse_too_large(instance)
    except InfeasibleError:
        return False
    return True


def refuse_too_large(instance: CodesignInstance) -> None:
    """Raise InfeasibleError if the memory of the servers cannot hold a layer, or all of them together."""
    limit = instance.device.memory_bytes
    if limit is None:
        return
    remedies = f"; with {'; with '.join(instance.remedies)}" if instance.remedies else ""
    for layer in instance.layers:
        leanest = min(layer.strategies, key=lambda strategy: strategy.memory_bytes)
        if leanest.memory_bytes > limit:
            raise InfeasibleError(
                f"codesign instance '{instance.name}': no strategy of layer '{layer.name}' fits in memory: the "
                f"leanest, '{leanest.name}', takes {leanest.memory_bytes:.6g} bytes on a server that has {limit:.6g}; "
                f"{leanest.memory_bytes - limit:.6g} bytes are missing{remedies}"
            )
    total, have = least_memory_bytes(instance), limit * instance.servers
    if total > have * (1 + ROUNDING):
        raise InfeasibleError(
            f"codesign instance '{instance.name}': the layers do not fit in memory together: the leanest strategy of "
            f"each takes {total:.6g} bytes in all on {instance.servers} servers that have {have:.6g}; "
            f"{total - have:.6g} bytes are missing{remedies}"
        )
