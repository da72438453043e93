"""How much of a test's volume is in the default tests. The rest is marked slow; nothing is left out."""

import functools
import inspect
import reprlib

import pytest

SLOW = True
"""Whether slow tests run. Where only others are asked for, tests/conftest.py says no: thousands are not collected."""
SEEDS = 1
"""Seeds of a test among the default ones; many tests take the same branches."""


def for_each(names, values):
    """As ``pytest.mark.parametrize``, but one test for all values, and another one for all slow ones.

    Of a ``range``, which are seeds, all but the first few are slow ones.

    Thousands of tests take longer to be collected and reported than to run. What failed is noted at the error; what is
    skipped keeps nothing else from running.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    quick, rest = [], []
    for value in some(values, SEEDS) if isinstance(values, range) else values:
        param = value if hasattr(value, "marks") else pytest.param(*value) if len(names) > 1 else pytest.param(value)
        (rest if param.marks else quick).append(dict(zip(names, param.values, strict=True)))
    groups = [pytest.param(quick, id="each")] * bool(quick) + [slow(rest, id="rest")] * bool(rest)

    def decorate(function):
        @functools.wraps(function)
        def all_of_them(**fixtures):
            rows, skipped = fixtures.pop(names[0]), []
            for chosen in rows:
                try:
                    function(**fixtures, **chosen)
                except pytest.skip.Exception as reason:
                    skipped.append(reason)
                except BaseException as problem:
                    problem.add_note("with " + ", ".join(f"{name} = {reprlib.repr(of)}" for name, of in chosen.items()))
                    raise
            if len(skipped) == len(rows):
                raise skipped[0]

        known = inspect.signature(function)
        kept = [each for name, each in known.parameters.items() if name not in names[1:]]
        all_of_them.__signature__ = known.replace(parameters=kept)
        return pytest.mark.parametrize(names[0], groups)(all_of_them)

    return decorate


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
        # Where parameters are numbered to tell them apart, others would be another test's.
        if quick or SLOW or not _says_itself(value):
            params.append(value if quick else slow(*value if isinstance(value, tuple) else (value,)))
    return params or [slow(value) for value in values]


def _says_itself(value):
    """Whether the name of a test with this parameter tells it by what it is; others are told by their number."""
    return all(isinstance(each, int | str | float) for each in (value if isinstance(value, tuple) else (value,)))


def seeds(default, total):
    """Seeds 0, 1, ..., ``total`` - 1, of which the first ``default`` are in the default tests."""
    return some(range(total), default)


def spread(values, step):
    """All values as parameters, of which every ``step``-th is in the default tests."""
    values = list(values)
    return some(values, values[::step])
