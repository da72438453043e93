"""A family small enough to know everything about: choose items of least cost that weigh enough together."""

import sys
from dataclasses import dataclass
from itertools import combinations
from types import SimpleNamespace
from typing import Any, ClassVar

import pyomo.environ as pyo
import pytest

from ddlopt.models import catalogue
from ddlopt.models.contracts import Evaluation, Instance, Solution, Violation


class CoverInstance(Instance):
    family: str = "cover"
    weights: tuple[int, ...]
    costs: tuple[int, ...]
    need: int


class CoverSolution(Solution):
    family: str = "cover"
    chosen: tuple[int, ...]


def evaluate(instance, solution, exact=False):
    weight = sum(instance.weights[k] for k in solution.chosen)
    short = () if weight >= instance.need else (Violation("need", "all", weight, instance.need),)
    return Evaluation(sum(instance.costs[k] for k in solution.chosen), short)


@dataclass(frozen=True)
class Cover:
    """Minimises the cost of what is chosen, or maximises the cost of what is not."""

    leave: bool = False
    only_pairs: bool = False
    lie: float = 0.0

    sense: ClassVar[Any]

    def refuses(self, instance):
        return "nothing to choose from" if not instance.weights else None

    def scope(self, instance):
        return "pairs" if self.only_pairs else None

    def build(self, block, instance):
        items = range(len(instance.weights))
        block.ITEMS = pyo.Set(initialize=items)
        block.take = pyo.Var(block.ITEMS, domain=pyo.Binary)
        block.enough = pyo.Constraint(expr=sum(instance.weights[k] * block.take[k] for k in items) >= instance.need)
        if self.only_pairs:
            block.two = pyo.Constraint(expr=sum(block.take[k] for k in items) == 2)
        cost = sum(instance.costs[k] * block.take[k] for k in items)
        block.objective = pyo.Expression(expr=sum(instance.costs) - cost if self.leave else cost)

    def start(self, block, instance, solution):
        for k in block.ITEMS:
            block.take[k] = int(k in solution.chosen)

    def read(self, block, instance):
        chosen = tuple(k for k in block.ITEMS if pyo.value(block.take[k]) > 0.5)
        return CoverSolution(instance=instance.name, chosen=chosen)

    def objective_value(self, instance, value):
        return (sum(instance.costs) - value if self.leave else value) + self.lie


class Minimise(Cover):
    sense = "minimize"


class Maximise(Cover):
    sense = "maximize"


def brute_force(instance, size=None):
    items = range(len(instance.weights))
    sizes = range(len(items) + 1) if size is None else [size]
    costs = [
        sum(instance.costs[k] for k in chosen)
        for count in sizes
        for chosen in combinations(items, count)
        if sum(instance.weights[k] for k in chosen) >= instance.need
    ]
    return min(costs, default=None)


@pytest.fixture
def register_family(monkeypatch):
    """A function that has the catalogue know a family during one test, as if it had a folder."""

    def register(kind):
        monkeypatch.setattr(catalogue, "FAMILY_NAMES", (*catalogue.FAMILY_NAMES, kind.name))
        monkeypatch.setitem(sys.modules, f"ddlopt.models.{kind.name}", SimpleNamespace(FAMILY=kind))

    catalogue.family.cache_clear()
    yield register
    catalogue.family.cache_clear()


@pytest.fixture
def cover(register_family):
    """The family, registered for one test."""
    problem = catalogue.Problem(
        path="cover",
        title="which items weigh enough at least cost",
        counts="items",
        limited_by="the weight that is needed",
        instance=CoverInstance,
        solution=CoverSolution,
        evaluate=evaluate,
        bound=lambda _: 1.0,
    )
    register_family(catalogue.Family.of_one("least cost that weighs enough", problem))
    small = CoverInstance(name="small", weights=(3, 5, 7, 9, 11), costs=(4, 5, 8, 9, 13), need=17)
    return SimpleNamespace(
        instance=small,
        Instance=CoverInstance,
        Solution=CoverSolution,
        minimise=lambda **options: Minimise(**options),
        maximise=lambda **options: Maximise(leave=True, **options),
        brute_force=brute_force,
    )
