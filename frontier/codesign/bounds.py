"""The bound by prices: the entry point ``ddlopt.bounds``."""

from weakref import WeakKeyDictionary

from ddlopt.frontier.codesign.prices.prices import PricedBound, best_prices
from ddlopt.models.codesign.bounds import refuse_too_large
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import Tables, tables_of

_KNOWN: WeakKeyDictionary[Tables, PricedBound] = WeakKeyDictionary()


def prices_bound(instance: CodesignInstance) -> float:
    """Iteration time in seconds that no plan can beat: :func:`~ddlopt.frontier.codesign.prices.prices.best_prices`.

    It is calculated once for an instance in memory.

    Raises
    ------
    InfeasibleError
        If the memory of the servers cannot hold a layer, or all of them together.
    """
    return priced_bound(instance).value_s


def priced_bound(instance: CodesignInstance) -> PricedBound:
    """The same with prices, and with the strategies that look best at them."""
    refuse_too_large(instance)
    tables = tables_of(instance)
    if tables not in _KNOWN:
        _KNOWN[tables] = best_prices(tables)
    return _KNOWN[tables]
