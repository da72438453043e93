"""Every bound that the suite has on an instance, by name, each as a figure of the instance's objective.

A bound that is none shows as soon as somebody has a solution that is better. So that no code path is left out: the
bounds that the problem's record names, the relaxation of each formulation that claims to cover all solutions, and what
is known of problems inside the instance, as of the topology that strategies leave.
"""

from ddlopt.certificates.own import exact_bound_of
from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.models import announced_bounds
from ddlopt.models.catalogue import problem_of
from ddlopt.models.codesign.job import job_of
from ddlopt.models.errors import NotApplicableError, SolverError
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import formulation_of
from ddlopt.solvers.exact import lp_relaxation

TOLERANCE = 1e-9
"""Relative: what a float may lose in a sum."""
OF_SOLVERS = 1e-6
"""The same of a floating-point solver."""


def passes(instance, bound, objective, tolerance=TOLERANCE):
    """Whether a bound says that there is no such solution."""
    sign = 1 if instance.sense == "minimize" else -1
    return sign * (float(bound) - float(objective)) > tolerance * abs(float(objective))


def closed_forms(instance):
    """The problem's own bound, and the tightest with the frontier's; of topologies each one that it is the best of."""
    problem = problem_of(instance)
    own = problem.bound(instance)
    found = {"bound": own, "tightest bound": announced_bounds.tightest(instance, problem.path, own)}
    if problem.path == "topology":
        found |= {name: instance.iteration_time_s(value) for name, value in congestion_bounds(instance).items()}
    return {name: value for name, value in found.items() if value is not None}


def exact_forms(instance):
    """The bound in rational numbers, where the problem has one."""
    exact_bound = exact_bound_of(problem_of(instance).path)
    if exact_bound is None:
        return {}
    try:
        return {"exact bound": exact_bound(instance)}
    except NotApplicableError:
        return {}


def of_the_job(instance, plan):
    """Bounds on the topology that the strategies of a co-design's plan leave."""
    job = job_of(instance, plan.choices(instance))
    if job is None:
        return {}
    found = congestion_bounds(job)
    return {name: job.iteration_time_s(value) for name, value in found.items()}


def relaxations(instance):
    """Optima of all formulations with integers relaxed, of those that claim to have every solution."""
    problem, solved = problem_of(instance), []
    for name, made in _formulations(instance, problem):
        if made not in solved and made.refuses(instance) is None and made.scope(instance) is None:
            solved.append(made)  # several methods solve the same program
            try:
                found = lp_relaxation(made, instance)
            except (SolverError, NotApplicableError):  # no linear program, or none that HiGHS takes
                continue
            yield f"relaxation of {name}", found.objective


def _formulations(instance, problem):
    for entry in catalogue.own_entries(instance.family):
        method = entry.make("highs")
        if entry.kind == "exact" and method.refuses(instance) is None:
            formulation = formulation_of(method, instance)
            if formulation is not None:
                yield entry.name, formulation
    for name, make in problem.relaxations.items():
        yield name, make()
