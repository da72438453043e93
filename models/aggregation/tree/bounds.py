"""Bounds for aggregation in trees that need no solver."""

import numpy as np

from ddlopt.models.aggregation.tree.evaluate import messages
from ddlopt.models.aggregation.tree.instance import TreeInstance
from ddlopt.models.aggregation.tree.tables import budgets, tables
from ddlopt.models.tolerances import ROUNDING


def tree_bound(instance: TreeInstance) -> float:
    r"""Seconds below which no answer is.

    Another aggregating switch adds messages to no link, so all that have memory for a job give the least that any link
    carries. For utilization there is a second bound. A switch v that aggregates and receives :math:`n_v` messages
    spares the links above it :math:`n_v - 1`, so the utilization is what it is without aggregation less
    :math:`\sum_v (n_v - 1)\, \rho(\text{path of } v)`; and :math:`n_v` is at most the load below v. The largest such
    savings within the budgets are at least those of any answer.
    """
    figures = tables(instance)
    rates = np.array(instance.seconds_per_message)
    sizes = np.array([job.message_size for job in instance.jobs])
    least = np.array([messages(instance, job, np.flatnonzero(each)) for job, each in enumerate(figures.useful)])
    busy = rates * (sizes @ least)
    # Sums of rounded numbers: a bound must not be above what is calculated in another order.
    margin = 1 - ROUNDING
    if instance.goal == "congestion":
        return margin * float(busy.max())
    nothing = sum(job.message_size * float(figures.path_s @ job.loads) for job in instance.jobs)
    total, each = budgets(instance, figures.useful)
    savings = np.where(figures.useful, sizes[:, None] * (figures.below - 1) * figures.path_s, 0.0)
    kept = [np.sort(row)[::-1][:most] for row, most in zip(savings, each, strict=True)]
    most = np.sort(np.concatenate(kept))[::-1][:total].sum()
    return margin * max(float(busy.sum()), float(nothing - most))
