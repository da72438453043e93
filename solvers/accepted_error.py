"""Whether a plan that loses much of the gradients is an answer, where no budget says so."""

import math

from ddlopt.models.compression.unlimited_error import ACCEPTED_ERROR, error_is_unlimited, told
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import OptionError
from ddlopt.solvers.certified import told_anew, withheld
from ddlopt.solvers.contracts import Result


def require_acceptable(instance: Instance, accept_error: float | None) -> None:
    """Raise :class:`OptionError` if the option is out of its range, or the instance has no use for it."""
    if accept_error is None:
        return
    if isinstance(accept_error, bool) or math.isnan(accept_error) or accept_error < 0:
        raise OptionError(f"accept_error is {accept_error}; it must be a number of at least 0, or inf for any error")
    if not error_is_unlimited(instance):
        budget = getattr(instance, "error_budget", None)
        why = f"error_budget is {budget:g}" if budget is not None else "no error grows there without a limit"
        raise OptionError(f"accept_error is of no use on '{instance.name}': {why}; leave it out")


def accepted(instance: Instance, result: Result, accept_error: float | None, named: bool) -> Result:
    """The result, or where its plan loses more than is accepted one without a solution, that says what to set.

    Parameters
    ----------
    accept_error : float or None
        None: :data:`~ddlopt.models.compression.unlimited_error.ACCEPTED_ERROR`, but whoever named a method only gets a
        message.
    named : bool
        Whether somebody named the method.
    """
    error = result.details.get("error")
    limit = ACCEPTED_ERROR if accept_error is None else accept_error
    if error is None or error <= limit or not error_is_unlimited(instance):
        return result
    if named and accept_error is None:
        return told_anew(result, message="; ".join(filter(None, (result.message, told(error)))))
    why = f"{told(error)}, or accept_error={math.ceil(1e3 * error) / 1e3:g} (--accept-error) to take such a plan"
    return withheld(result, f"more than {limit:g} is lost: {why}")
