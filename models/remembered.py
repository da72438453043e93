"""What is calculated of an instance once, and kept as long as the instance is."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Result = TypeVar("Result")


def remembered(function: Callable[[Any], Result]) -> Callable[[Any], Result]:
    """A function of a frozen object, whose result is kept with the object, as ``cached_property`` keeps its own.

    For what lies in another module than the object's class, and may not be imported there.
    """
    key = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def kept(thing: Any) -> Result:
        known = vars(thing)
        if key not in known:
            known[key] = function(thing)
        result: Result = known[key]
        return result

    return kept
