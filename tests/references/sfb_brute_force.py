"""Sufficient factor broadcasting by enumeration, through the check that knows no method."""

from itertools import combinations

import numpy as np

from ddlopt.models.compression import SfbSelection, evaluate


def selections(instance):
    """Every selection of operators that may be duplicated, the smallest first."""
    may = np.flatnonzero(instance.eligible).tolist()
    for size in range(len(may) + 1):
        for chosen in combinations(may, size):
            yield SfbSelection(instance=instance.name, duplicated=chosen)


def all_best(instance, exact=False):
    """Least objective of a selection that keeps the budgets, and all selections that have it."""
    best, found = None, []
    for selection in selections(instance):
        evaluation = evaluate(instance, selection, exact=exact)
        if not evaluation.feasible or (best is not None and evaluation.objective > best):
            continue
        if best is None or evaluation.objective < best:
            best, found = evaluation.objective, []
        found.append(set(selection.duplicated))
    return best, found
