"""How much of a test's volume is in the default tests. The rest is marked slow; nothing is left out."""

import pytest


def slow(*values, **more):
    """A parameter of the slow tests."""
    return pytest.param(*values, marks=pytest.mark.slow, **more)


def some(values, default, of=None):
    """All values as parameters: the first ``default`` ones, or those that ``default`` names, in the default tests.

    With ``of``, which says what group a value belongs to, the first ones of each group.
    """
    params, met = [], {}
    for value in values:
        if isinstance(default, int):
            group = of(value) if of else None
            met[group] = met.get(group, 0) + 1
            quick = met[group] <= default
        else:
            quick = value in default
        params.append(value if quick else slow(*value if isinstance(value, tuple) else (value,)))
    return params


def seeds(default, total):
    """Seeds 0, 1, ..., ``total`` - 1, of which the first ``default`` are in the default tests."""
    return some(range(total), default)


def spread(values, step):
    """All values as parameters, of which every ``step``-th is in the default tests."""
    values = list(values)
    return some(values, values[::step])
