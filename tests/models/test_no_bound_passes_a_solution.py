"""No bound of any code path passes the best known solution: of the library, and of small instances drawn oddly."""

import itertools

import pytest
from all_bounds import OF_SOLVERS, closed_forms, exact_forms, of_the_job, passes, relaxations
from volume import for_each, slow, some

import ddlopt
from ddlopt import instances
from ddlopt.instances import index
from ddlopt.instances.odd import SETTINGS, odd_instance
from ddlopt.models.catalogue import FAMILY_NAMES, problems
from ddlopt.models.errors import DdloptError
from ddlopt.solvers import catalogue

QUICK_CODESIGN = ("tiny", "-n16-", "-n12-", "-n8-")
"""Parts of names: of larger jobs the prices take a second each."""
RELAXED = 1
"""The smallest instances of a problem, whose relaxations are solved in the default tests."""
DRAWN_SEEDS = 20
DRAWN = list(itertools.product(problems(), range(DRAWN_SEEDS)))
LARGE = {"aggregation/table": {11}, "deployment/microbatches": {0, 16}, "gossip/period": {2}}
"""Seeds of instances on which a relaxation or a rational bound takes seconds; they are left to the slow tests."""
LEAST_SOLVED = 5
"""Of twenty; of training steps most odd ones have no way in common."""
QUICK_SEEDS = {
    "topology": 12,
    "codesign": 15,
    "compression/levels": 5,
    "cluster/joint": 11,
    "deployment/microbatches": 4,
    "gossip/period": 10,
}
"""Of problems whose first odd instances have no solution, or programs that take seconds."""
QUICK_DRAWN = {(path, QUICK_SEEDS.get(path, place % 4)) for place, path in enumerate(problems())}


def false_bounds(instance, objective, named, tolerance=1e-9):
    return {name: (value, objective) for name, value in named if passes(instance, value, objective, tolerance)}


def listed(name):
    """What the index says of a bundled instance, as its objective: that of records, which other tests hold."""
    return index.read().instances[name]


def is_quick(name):
    return not name.startswith("codesign/") or any(part in name for part in QUICK_CODESIGN)


def by_problem():
    """Names of each problem's instances, those in small files first."""

    def size(name):
        family, _, stem = name.partition("/")
        return (instances.library_folder(family) / f"{stem}.json").stat().st_size

    found = {path: [] for path in problems()}
    for name in sorted(instances.names(), key=size):
        found[listed(name).problem].append(name)
    return found


@pytest.mark.parametrize("family", FAMILY_NAMES)
@pytest.mark.parametrize("quick", [True, slow(False)])
def test_closed_forms_hold_for_the_best_known_solutions(family, quick):
    for name in instances.names(family):
        if is_quick(name) == quick:
            instance = instances.load(name)
            named = closed_forms(instance)
            if family == "codesign":
                named |= of_the_job(instance, instances.best(name))
            assert not false_bounds(instance, listed(name).objective, named.items()), name


@pytest.mark.parametrize("chosen", [slice(0, RELAXED), slow(slice(RELAXED, 6 * RELAXED))], ids=["smallest", "more"])
def test_relaxations_do(chosen):
    for name in itertools.chain(*(names[chosen] for names in by_problem().values())):
        instance = instances.load(name)
        assert not false_bounds(instance, listed(name).objective, relaxations(instance), OF_SOLVERS), name


@for_each("path, seed", some(DRAWN, QUICK_DRAWN))
def test_none_passes_a_solution_of_an_odd_instance(path, seed):
    """Bounds of every method among them; the solution is the best that any method finds."""
    instance = odd_instance(path, (None, *SETTINGS)[seed % 4], seed)
    named, solved = [], []
    for entry in catalogue.own_entries(instance.family):
        if entry.kind == "reference" or entry.make("highs").refuses(instance) is not None:
            continue
        try:
            result = ddlopt.solve(instance, entry.name, time_limit=1.0)
        except DdloptError:  # it covers others of its kind, but not this one
            continue
        if result.checked:
            solved.append(result.objective)
        if result.bound is not None:
            named.append((f"bound of {entry.name}", result.bound))
    if not solved:  # infeasible
        assert (path, seed) not in QUICK_DRAWN, "say a seed whose instance has a solution"
        return
    objective = min(solved) if instance.sense == "minimize" else max(solved)
    named += closed_forms(instance).items()
    named += exact_forms(instance).items()
    named += relaxations(instance)
    assert not false_bounds(instance, objective, named, OF_SOLVERS)


@for_each("path", problems())
def test_no_bound_passes_what_is_found_of_twenty_odd_instances(path):
    """Closed and rational bounds, relaxations, and what the default method says: against what that one finds."""
    solved = 0
    for seed in set(range(DRAWN_SEEDS)) - LARGE.get(path, set()):
        instance = odd_instance(path, (None, *SETTINGS)[seed % 4], seed)
        try:
            result = ddlopt.solve(instance, time_limit=1.0)
        except DdloptError:  # infeasible, or no method covers it
            continue
        if result.checked:
            solved += 1
            own = {} if result.bound is None else {"bound of the result": result.bound}
            named = closed_forms(instance) | exact_forms(instance) | own | dict(relaxations(instance))
            assert not false_bounds(instance, result.objective, named.items(), OF_SOLVERS), instance.name
    assert solved >= LEAST_SOLVED


def test_a_false_bound_is_found():
    low, high = (instances.load(name) for name in ("topology/tiny-n4-d2", "scheduling/tiny-fair"))
    assert passes(low, 1.001, 1.0)
    assert not passes(low, 1.0, 1.0)
    assert passes(high, 0.999, 1.0)
    assert not passes(high, 1.001, 1.0)
