"""No method or bound of a problem contradicts another one, on small instances that are odd on purpose.

    nice -n 10 python benchmarks suite/pairs

Instances are drawn and then made odd: *ties*, *zeros*, *unequal* sizes (:mod:`ddlopt.instances.odd`). Every method that
covers an instance answers it, and every bound of its problem is calculated: the combinatorial one, in floating point
and in rational numbers, and those of relaxations. Then all pairs are compared:

* no bound is on the wrong side of any checked objective,
* solutions that are called optimal are equally good,
* nobody says *infeasible* where another one has a solution,
* nothing ends with an exception other than a refusal.

A solve that is still running long after its limit is ended and counted as late.
"""

import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any

from benchmarks.harness import Benchmark, Option
from ddlopt.instances.odd import SETTINGS, odd_instance
from ddlopt.models.catalogue import problem_of, problems
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import DdloptError, InfeasibleError, NotApplicableError
from ddlopt.models.tolerances import OBJECTIVE_TOL
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.catalogue import entries
from ddlopt.solvers.contracts import Limits, Result, Status
from ddlopt.solvers.exact import build_model

_NOUGHT = 1e-9
"""Absolute difference that counts as none in an objective that may be a sum whose parts cancel, as at the gate."""
_PATIENCE_S = 30.0
"""Seconds after the limit after which a solve is ended."""


class LateError(Exception):
    """A solve went on long after its limit."""


@dataclass
class Compared:
    """What methods and bounds say of one instance.

    Parameters
    ----------
    instance : Instance
    objectives : dict of str to Fraction
        Exact ones of checked solutions, by method.
    optimal : list of str
        Methods that say that theirs cannot be improved.
    bounds : dict of str to Fraction
        By who says so.
    infeasible : list of str
        Who says that there is no solution.
    broken : list of str
        Unexpected exceptions.
    late : list of str
    """

    instance: Instance
    gap: float
    objectives: dict[str, Fraction] = field(default_factory=dict)
    optimal: list[str] = field(default_factory=list)
    bounds: dict[str, Fraction] = field(default_factory=dict)
    infeasible: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)

    @property
    def pairs(self) -> int:
        """How many pairs there are to compare."""
        optimal = len(self.optimal)
        refusals = len(self.infeasible) * len(self.objectives)
        return len(self.bounds) * len(self.objectives) + optimal * (optimal - 1) // 2 + refusals

    def contradictions(self) -> list[str]:
        """Each pair that cannot both be true, in a line."""
        sign, found = (1 if self.instance.sense == "minimize" else -1), []
        for who, bound in self.bounds.items():
            for method, objective in self.objectives.items():
                if sign * (bound - objective) > _slack(objective):
                    found.append(f"bound {float(bound):.12g} of {who}, {float(objective):.12g} of {method}")
        for one, other in combinations(self.optimal, 2):
            values = self.objectives[one], self.objectives[other]
            if abs(values[0] - values[1]) > Fraction(self.gap) * max(map(abs, values)) + _slack(values[0]):
                found.append(f"optima {float(values[0]):.12g} of {one}, {float(values[1]):.12g} of {other}")
        if self.objectives and self.infeasible:
            method = next(iter(self.objectives))
            found += [f"infeasible says {who}, {method} has a solution" for who in self.infeasible]
        return found


def _slack(objective: Fraction) -> Fraction:
    return Fraction(OBJECTIVE_TOL) * abs(objective) + Fraction(_NOUGHT)


def compared(instance: Instance, limits: Limits) -> Compared:
    """What every method and bound says of an instance."""
    found = Compared(instance, limits.gap)
    for entry in entries(instance.family):
        _noted(found, entry.name, lambda entry=entry: _solved(found, entry.name, entry.make("highs"), limits))
    problem = problem_of(instance)
    _noted(found, "bound", lambda: _bound(found, "bound", problem.bound(instance)))
    if problem.exact_bound is not None:
        _noted(found, "exact bound", lambda: _bound(found, "exact bound", problem.exact_bound(instance)))
    for name, make in problem.relaxations.items():
        _noted(found, f"relaxation {name}", lambda name=name, make=make: _relaxed(found, name, make(), limits))
    return found


def _noted(found: Compared, who: str, ask: Any) -> None:
    """Ask, and note what comes of it that is no answer."""

    def end(*_: object) -> None:
        raise LateError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE_S)
    try:
        ask()
    except NotApplicableError:
        pass
    except InfeasibleError:
        found.infeasible.append(who)
    except LateError:
        found.late.append(who)
    except Exception as problem:  # whatever it is: that is what is looked for
        told = problem if isinstance(problem, DdloptError) else repr(problem)
        found.broken.append(f"{who}: {type(problem).__name__}: {str(told)[:300]}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _bound(found: Compared, who: str, value: float | Fraction | None) -> None:
    if value is not None and abs(value) != float("inf"):
        found.bounds[who] = Fraction(value)


def _solved(found: Compared, who: str, method: Any, limits: Limits) -> None:
    if method.refuses(found.instance) is None:
        _answered(found, who, method.solve(found.instance, limits, 0))


def _answered(found: Compared, who: str, result: Result) -> None:
    if result.status is Status.INFEASIBLE:
        found.infeasible.append(who)
    if result.status is Status.REFERENCE:
        return
    _bound(found, who, result.bound)
    if result.solution is None:
        return
    exact = problem_of(found.instance).evaluate(found.instance, result.solution, exact=True)
    # What floating point lets pass as rounding may be a violation in rational numbers; its objective counts as found.
    found.objectives[who] = Fraction(result.objective if exact.objective is None else exact.objective)
    if result.status is Status.OPTIMAL:
        found.optimal.append(who)


def _relaxed(found: Compared, name: str, formulation: Any, limits: Limits) -> None:
    """The bound of a relaxation, whose solutions are none of the instance."""
    instance, who = found.instance, f"relaxation {name}"
    if formulation.refuses(instance) is None:
        outcome = Highs().solve(build_model(instance.family, formulation, instance), limits, 0)
        if outcome.status is Status.INFEASIBLE:
            found.infeasible.append(who)
        elif outcome.bound is not None:
            _bound(found, who, formulation.objective_value(instance, outcome.bound))


def pairs(asked: Any) -> Iterator[dict[str, Any] | str]:
    """A row for each problem and setting."""
    told, total = [], 0
    limits = Limits(asked.time_limit)
    for path in asked.problems or problems():
        for setting in SETTINGS:
            sums = dict.fromkeys(("instances", "answers", "bounds", "pairs", "contradictions", "broken", "late"), 0)
            for seed in range(asked.first, asked.first + asked.seeds):
                one = compared(odd_instance(path, setting, seed), limits)
                wrong = one.contradictions()
                figures = 1, len(one.objectives), len(one.bounds), one.pairs, len(wrong), len(one.broken), len(one.late)
                sums = {name: sums[name] + value for name, value in zip(sums, figures, strict=True)}
                late = [f"late: {who}" for who in one.late]
                told += [f"{path} {setting} {seed}: {line}" for line in (*wrong, *one.broken, *late)]
            total += sums["pairs"]
            yield {"problem": path, "setting": setting, **sums}
    yield f"{total} pairs compared, {len(told)} remarks."
    yield from told


BENCH = Benchmark(
    pairs,
    problems=Option([], "paths of problems; all by default", ["aggregation/tree"], str, positional=True),
    seeds=Option(30, "instances for each setting", 2),
    first=Option(0, "the first seed"),
    time_limit=Option(1.0, quick=0.5),
    in_all=False,
)
