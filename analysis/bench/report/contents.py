"""What the pages of a report speak of: instances and families."""

from dataclasses import dataclass

import pandas as pd

from ddlopt.analysis.bench.report.curves import Curves
from ddlopt.analysis.bench.report.summary import Summary
from ddlopt.solvers.contracts import relative_gap


@dataclass(frozen=True)
class Listed:
    """An instance in the list of its family."""

    digest: str
    title: str
    family: str
    name: str
    sizes: str
    source: str
    best: float | None
    unit: str
    sense: str
    runs: int
    answered: int
    best_method: str
    bound: float | None
    bound_by: str

    @property
    def best_gap(self) -> float | None:
        """Of the best known objective to the best bound, relative to the objective."""
        return relative_gap(self.best, self.bound, "maximize" if self.sense == "maximize" else "minimize")

    @property
    def file(self) -> str:
        """The page of the instance."""
        return f"instances/{self.name}.html"


@dataclass(frozen=True)
class Overview:
    """A family: all its runs, its instances, and what its ranked runs come to (None if there are none)."""

    family: str
    runs: pd.DataFrame
    instances: list[Listed]
    summary: Summary | None
    curves: Curves
