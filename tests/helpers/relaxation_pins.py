"""How strong each formulation is: values of its relaxation on bundled instances, which no change may make weaker.

``tests/embedding/relaxations.toml`` has the pins, a line each. ``python tests/helpers/relaxation_pins.py`` calculates
them anew: a stronger one is written, a weaker one is refused unless its formulation is named by ``--weaker``. A
formulation without a pin gets those instances on which its constraints are felt. ``--felt NAME`` lists the constraints
of a formulation, and on which pinned instances the relaxation gets weaker without them.
"""

import argparse
import dataclasses
import inspect
import sys
import time
import tomllib
import zlib
from pathlib import Path

import cvxpy as cp
import embedding_cases as cases
import numpy as np
import pyomo.environ as pyo
from scipy.optimize import Bounds, LinearConstraint, milp

import ddlopt
import ddlopt.instances
from ddlopt.models.catalogue import outside_of_room
from ddlopt.models.errors import SolverError
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.contracts import Limits, Status

TABLE = Path(__file__).parents[1] / "embedding" / "relaxations.toml"
TOLERANCE = 1e-4
"""Relative: far above what solvers differ by, and below what a lost row costs."""
QUICK_S = 0.25
"""Processor seconds that a pin of the default tests may take; they are about a hundred."""
TRIED, KEPT = 8, 3
"""Instances on which a new formulation is tried, and the most that it is pinned on."""
FIGURES = ("value", "rows", "priced")
HEAD = """\
# Optima of the relaxations of formulations, in the units of the model. `value`: of the formulation as it is built.
# `rows`: without the bounds of the variables that the objective counts, which often hide what the rows say.
# `priced`: the least cost at odd prices of the decisions, as a host model may have them.
# Written by `python tests/helpers/relaxation_pins.py`; pins of `slow` lines are held by the slow tests.
pin = [
"""


@dataclasses.dataclass(frozen=True)
class Program:
    """A formulation of the catalogue with its options, or a class of convex programs."""

    name: str
    family: str
    kind: type
    make: object
    convex: bool = False


@dataclasses.dataclass(frozen=True)
class Pin:
    """What the relaxation of a formulation on a bundled instance is worth; figures that say nothing more are None."""

    formulation: str
    instance: str
    sense: str
    value: float
    rows: float | None = None
    priced: float | None = None
    slow: bool = False

    def weaker_than(self, other):
        """The figures that are worse than those of another pin by more than the tolerance."""
        worse = []
        for name in FIGURES:
            sign = -1 if self.sense == "maximize" and name != "priced" else 1
            mine, its = self._figure(name), other._figure(name)
            if its is None:
                continue
            if mine is None or sign * (its - mine) > TOLERANCE * max(abs(its), abs(mine)):
                worse.append(f"{name} {'none' if mine is None else f'{mine:.6g}'} in place of {its:.6g}")
        return worse

    def _figure(self, name):
        found = getattr(self, name)
        return self.value if found is None and name == "rows" else found

    def __str__(self):
        figures = ", ".join(
            f"{name} = {getattr(self, name):.5g}" for name in FIGURES if getattr(self, name) is not None
        )
        named = f'formulation = "{self.formulation}", instance = "{self.instance}", sense = "{self.sense}"'
        return f"    {{ {named}, {figures}{', slow = true' if self.slow else ''} }},"


def programs():
    """Every formulation that there is, by name."""
    found = {case.name: Program(case.name, case.family, case.kind, case.make) for case in cases.cases()}
    for family, kind in cases.classes("problem"):
        found[kind.__name__] = Program(
            kind.__name__, family, kind, lambda each, kind=kind: cases.convex(kind, each), True
        )
    return found


def pins():
    """Those of the table."""
    return [Pin(**line) for line in tomllib.loads(TABLE.read_text(encoding="utf-8"))["pin"]]


class Relaxed:
    """The relaxation of a formulation on an instance, which can be solved without some of its constraints."""

    def __init__(self, program, instance):
        self.formulation = program.make(instance)
        if program.convex:
            self.program = cases.program(program.kind, instance)
            self.sense = "minimize" if isinstance(self.program.objective, cp.Minimize) else "maximize"
            return
        self.program, self.sense = None, self.formulation.sense
        self.model = pyo.ConcreteModel()
        self.model.block = pyo.Block()
        cases.build(self.model.block, self.formulation, instance)
        self.model.objective = pyo.Objective(expr=self.model.block.objective, sense=getattr(pyo, self.sense))
        self.linear = linear_model(self.model)

    def constraints(self):
        """Names of the constraints, in the order of declaration; of a convex program their numbers."""
        if self.program is not None:
            return list(range(len(self.program.constraints)))
        return list(dict.fromkeys(row.parent_component().local_name for row in self.linear.rows))

    def solve(self, without=None):
        """``(value, rows, priced)``; None where there is no optimum, or none that says more."""
        if self.program is not None:
            kept = [each for number, each in enumerate(self.program.constraints) if number != without]
            try:
                found = Convex().solve(cp.Problem(self.program.objective, kept), Limits())
            except SolverError:  # unbounded, in its way of saying so
                return None, None, None
            # On some processors the solver ends between 1e-8 and 1e-7, and says that this is not accurate.
            return found.value if found.status in (Status.OPTIMAL, Status.FEASIBLE) else None, None, None
        linear, (lower, upper) = self.linear, self._unbounded()
        names = np.array([row.parent_component().local_name for row in linear.rows])
        kept = np.flatnonzero(names != without) if len(names) else np.arange(0)
        value = self._optimum(kept, linear.lower, linear.upper)
        same = np.array_equal(lower, linear.lower) and np.array_equal(upper, linear.upper)
        rows = None if same else self._optimum(kept, lower, upper)
        prices = np.array([_price(column) if linear.integer[j] else 0.0 for j, column in enumerate(linear.columns)])
        odd = dataclasses.replace(self.linear, maximise=False, cost=prices, offset=0.0)
        return value, rows, self._optimum(kept, linear.lower, linear.upper, odd) if prices.any() else None

    def _unbounded(self):
        """Bounds of the variables, without those that are bounds on the objective."""
        linear = self.linear
        lower, upper = linear.lower.copy(), linear.upper.copy()
        towards = linear.cost if not linear.maximise else -linear.cost
        lower[towards > 0] = np.minimum(lower[towards > 0], 0.0)
        if np.count_nonzero(towards) == 1:
            upper[towards < 0] = np.inf
        return lower, upper

    def _optimum(self, kept, lower, upper, asked=None):
        linear = asked or self.linear
        sign = -1 if linear.maximise else 1
        rows = LinearConstraint(linear.matrix[kept], linear.row_lower[kept], linear.row_upper[kept])
        found = milp(sign * linear.cost, constraints=rows, bounds=Bounds(lower, upper), options={"time_limit": 60})
        return sign * found.fun + linear.offset if found.status == 0 else None


def _price(column):
    """Between -1 and 1, by the name of a variable."""
    return zlib.crc32(column.name.encode()) % 2001 / 1000 - 1


def measured(program, name, slow=False):
    """The pin of a formulation on a bundled instance as the code is now; None if it refuses it or has no optimum."""
    instance = cases.loaded(name)
    if hasattr(made := program.make(instance), "refuses") and made.refuses(instance) is not None:
        return None
    relaxed = Relaxed(program, instance)
    value, rows, priced = relaxed.solve()
    if value is None:
        return None
    same = rows is None or abs(rows - value) <= 0.1 * TOLERANCE * abs(value)
    return Pin(program.name, name, relaxed.sense, value, None if same else rows, priced, slow)


def annotated(kind):
    """The class of instances in the signature of a formulation."""
    method = kind.problem if hasattr(kind, "problem") else kind.build
    return inspect.get_annotations(inspect.unwrap(method)).get("instance", object)


def covered(program):
    """Names of the bundled instances that a formulation covers, those in the smallest files first."""
    folder = ddlopt.instances.library_folder(program.family).parent
    for name in sorted(ddlopt.names(program.family), key=lambda name: (folder / f"{name}.json").stat().st_size):
        instance = cases.loaded(name)
        if program.kind in cases.OF_DESIGNS and not isinstance(instance, TopologyInstance):
            continue
        formulation = program.make(instance)
        if not isinstance(instance, annotated(program.kind)):
            continue
        if outside_of_room(formulation, instance) is None and formulation.refuses(instance) is None:
            yield name


def felt(program, name):
    """The constraints without which the relaxation on an instance is weaker, or has no optimum."""
    relaxed = Relaxed(program, cases.loaded(name))
    whole = relaxed.solve()
    found = []
    for each in relaxed.constraints():
        for before, after in zip(whole, relaxed.solve(without=each), strict=True):
            if before is not None and (after is None or abs(after - before) > TOLERANCE * abs(before)):
                found.append(each)
                break
    return relaxed.constraints(), found


def chosen(program):
    """Pins for a formulation that has none: of the quick instances those on which most constraints are felt."""
    known, slow = {}, 0
    for name in covered(program):
        began = time.process_time()
        pin = measured(program, name)
        spent = time.process_time() - began
        slow += spent > QUICK_S
        if pin is not None and (pin.value or pin.rows) and (spent <= QUICK_S or not known):
            known[name] = (dataclasses.replace(pin, slow=spent > QUICK_S), set(felt(program, name)[1]), spent)
        if slow >= 2 or len(known) >= TRIED:
            break
    found, seen = [], set()
    while known and len(found) < KEPT:
        name = max(known, key=lambda each: (len(known[each][1] - seen), len(known[each][1]), -known[each][2]))
        pin, its, _ = known.pop(name)
        if found and not its - seen:
            break
        found.append(pin)
        seen |= its
    return found


def renewed(old, weaker, asked=()):
    """The table as the code is now, of all formulations or of those asked for, and what is refused."""
    made, refused = [], []
    for name, program in programs().items():
        its = [pin for pin in old if pin.formulation == name]
        if asked and name not in asked:
            made += its
            continue
        for pin in its:
            now = measured(program, pin.instance, pin.slow)
            worse = ["it is refused, or has no optimum"] if now is None else now.weaker_than(pin)
            if worse and name not in weaker:
                refused.append(f"{name} on {pin.instance} is weaker: {', '.join(worse)}")
                now = pin
            if now is not None:
                made.append(now if worse or pin.weaker_than(now) else pin)
        made += [] if its else chosen(program)
    return made, refused


def main():
    """Write the table, or list what is felt."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--weaker", action="append", default=[], metavar="NAME", help="a formulation that may be weaker"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="formulations to look at; default: all")
    parser.add_argument("--felt", metavar="NAME", help="list the constraints of a formulation, and write nothing")
    parser.add_argument(
        "--add", nargs=2, action="append", default=[], metavar=("NAME", "INSTANCE"), help="one more pin"
    )
    asked = parser.parse_args()
    old = pins() if TABLE.exists() else []
    known = programs()
    named = [*asked.names, *asked.weaker, *(name for name, _ in asked.add), *([asked.felt] if asked.felt else [])]
    if unknown := sorted(set(named) - set(known)):
        parser.error(f"there is no formulation '{unknown[0]}'; there are: {', '.join(known)}")
    if asked.felt:
        places = {}
        for pin in old:
            if pin.formulation == asked.felt:
                every, its = felt(known[asked.felt], pin.instance)
                for each in every:
                    places.setdefault(each, []).extend([pin.instance] * (each in its))
        for each, where in places.items():
            print(f"{each}: {', '.join(where) or 'no pin feels it'}")
        return 0
    for name, instance in asked.add:
        pin = measured(known[name], instance)
        if pin is None:
            parser.error(f"the relaxation of {name} on {instance} has no optimum")
        old.append(pin)
    made, refused = renewed(old, asked.weaker, asked.names)
    TABLE.write_text(HEAD + "\n".join(map(str, made)) + "\n]\n", encoding="utf-8")
    print(*refused, sep="\n", end="\n" if refused else "")
    if refused:
        print("Nothing weaker is written: look for the row that was lost, or name the formulation by --weaker.")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
