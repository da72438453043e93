"""Problems of levels for tests: small ones at random, and their optimum by trying all or by a plain integer program."""

import itertools
from math import fsum

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from ddlopt.instances.generators.compression import generate
from ddlopt.instances.odd import odd_instance
from ddlopt.models.compression import LevelInstance, LevelPlan, evaluate
from ddlopt.models.compression.levels.instance import error_at
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits


def random_levels(seed, **options):
    return generate("levels-random", seed, **options)


def with_budget(instance, budget):
    """The same instance with another budget of its goal."""
    name = "error_budget" if instance.goal == "time" else "time_budget_s"
    return LevelInstance.from_data(instance.model_dump() | {name: float(budget)})


def brute_force(instance):
    """The least objective over all levels, by the independent check."""
    choices = itertools.product(*(gradient.curve.allowed for gradient in instance.gradients))
    found = (evaluate(instance, LevelPlan(instance=instance.name, levels=levels)) for levels in choices)
    return min(float(each.objective) for each in found if each.feasible)


def optimum(instance):
    """The least objective, by an integer program with a binary for each level and a dense row for each gradient."""
    pairs = [(k, each, level) for k, each in enumerate(instance.gradients) for level in each.curve.allowed]
    own = np.array([k for k, _, _ in pairs])
    encode = np.array([each.encode_s + each.encode_s_per_level * level for _, each, level in pairs])
    wire = np.array([each.launch_s + each.wire_s_per_level * level for _, each, level in pairs])
    error = np.array([error_at(each.curve, level) for _, each, level in pairs])
    count = instance.size
    unit = instance.time_budget_s or float(encode.sum() + wire.sum())
    rows = np.array([encode * (own <= i) + wire * (own >= i) for i in range(count)]) / unit
    one_each = (own[None] == np.arange(count)[:, None]).astype(float)
    ready = np.array([each.ready_s for each in instance.gradients]) / unit
    limits = [
        LinearConstraint(np.c_[one_each, np.zeros(count)], 1, 1),
        LinearConstraint(np.c_[rows, -np.ones(count)], -np.inf, -ready),
    ]
    if instance.goal == "time":
        scale, goal, longest = unit, np.append(0 * error, 1.0), np.inf
        limits.append(LinearConstraint(np.append(error / instance.error_budget, 0.0)[None], -np.inf, 1))
    else:
        scale, longest = fsum(error) / len(error), 1.0
        goal = np.append(error / scale, 0.0)
    bounds = Bounds(0, np.append(np.ones(len(pairs)), longest))
    whole = np.append(np.ones(len(pairs)), 0)
    found = milp(goal, constraints=limits, integrality=whole, bounds=bounds, options={"mip_rel_gap": 1e-7})
    assert found.success, found.message
    levels = [0] * count
    for (k, _, level), chosen in zip(pairs, found.x, strict=False):
        levels[k] = level if chosen > 0.5 else levels[k]
    checked = evaluate(instance, LevelPlan(instance=instance.name, levels=tuple(levels)))
    assert not checked.violations
    return float(checked.objective)


def a_little_late():
    """An instance whose optimum takes longer than the time budget by less than what the check lets pass; its error."""
    instance = odd_instance("compression/levels", None, 0)
    best = method("overlap-timeline", "compression").solve(instance, Limits(10.0, 0.0))
    time_s = evaluate(instance, best.solution).details["time_s"]
    tight = instance.changed(time_budget_s=time_s * (1 - 9e-10))
    assert evaluate(tight, best.solution.changed(instance_digest=None)).feasible
    return tight, best.objective
