"""The runs of a store as one frame, without what only single pages need."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ddlopt.analysis import proofs
from ddlopt.analysis.bench.figures import statistics
from ddlopt.analysis.bench.store import Store
from ddlopt.models.errors import StoreError
from ddlopt.models.tolerances import OBJECTIVE_TOL

_WORDS = (
    "instance_digest", "instance", "family", "method", "options", "solver", "status", "evidence", "scope", "host",
    "machine", "finished", "versions", "revision",
)  # fmt: skip
_NUMBERS = (
    "id", "seed", "time_limit_s", "gap_limit", "threads", "memory_limit_bytes", "objective", "bound", "gap", "checked",
    "runtime_s", "wall_s", "peak_memory_bytes",
)  # fmt: skip


@dataclass(frozen=True)
class Data:
    """``runs``: one row a run; ``instances``: rows of the store by digest; ``target``: a gap that counts as reached."""

    runs: pd.DataFrame
    instances: Mapping[str, Mapping[str, Any]]
    target: float

    @property
    def ranked(self) -> pd.DataFrame:
        """The runs that statistics are made of: not superseded, and of the network that was asked about."""
        return self.runs[self.runs["current"] & (self.runs["status"] != statistics.REFERENCE)]


def read(store: Store, target: float) -> Data:
    """Read all runs but for their traces, messages, details and solutions.

    Besides columns of the store there are: ``id``, the place in the store; ``label``, the method, with its solver where
    it was run with several; ``current``, False where the same method answered the same instance with the same seed
    again later; ``sense`` and ``best_objective`` (best known); ``library_bound``; ``gap_to_best`` and
    ``gap_to_bound``; ``answered``;
    ``wrong``, where the run claims what another run or the library refutes.

    Raises
    ------
    StoreError
        If there are none.
    """
    runs = _columns(store)
    if runs.empty:
        raise StoreError(f"{store.path} has no results to report; `ddlopt bench` puts some there")
    instances = store.instances()
    runs["label"] = _labels(runs)
    finished = runs.assign(finished=runs["finished"].astype(str)).sort_values(["finished", "id"])
    latest = finished.drop_duplicates(["instance_digest", "label", "seed"], keep="last")
    runs["current"] = runs.index.isin(latest.index)
    for name in ("sense", "best_objective"):
        known = {digest: row[name] for digest, row in instances.items()}
        runs[name] = runs["instance_digest"].astype(str).map(known)
    runs["best_objective"] = runs["best_objective"].astype(float)
    best = statistics.best_known(runs)
    runs["best_objective"] = runs["instance_digest"].astype(str).map(best).astype(float)
    proven = {digest: found.bound for digest in instances if (found := proofs.known(digest)) is not None}
    runs["library_bound"] = runs["instance_digest"].astype(str).map(proven).astype(float)
    maximise = (runs["sense"] == "maximize").to_numpy()
    runs["sense"] = runs["sense"].astype("category")
    runs["gap_to_best"] = statistics.gap_to_best(runs["objective"], runs["best_objective"], maximise)
    runs["gap_to_bound"] = statistics.gap_to_bound(runs["objective"], runs["bound"], maximise)
    refuted = runs["status"].isin(statistics.PROOFS) & runs["best_objective"].notna()
    runs["wrong"] = refuted | _wrong(runs, maximise)
    runs["answered"] = statistics.solved(runs) & ~refuted
    return Data(runs, instances, target)


def _columns(store: Store) -> pd.DataFrame:
    """The columns, words as categories: of each there are few."""
    codes: dict[str, list[int]] = {name: [] for name in _WORDS}
    known: dict[str, dict[str, int]] = {name: {} for name in _WORDS}
    numbers: dict[str, list[float | None]] = {name: [] for name in _NUMBERS}
    columns = [*_WORDS, *("rowid" if name == "id" else name for name in _NUMBERS)]
    for row in store.rows(columns):
        values = tuple(row)
        for name, value in zip(_WORDS, values, strict=False):
            codes[name].append(known[name].setdefault(value or "", len(known[name])))
        for name, value in zip(_NUMBERS, values[len(_WORDS) :], strict=True):
            numbers[name].append(value)
    table = {name: pd.Categorical.from_codes(codes[name], list(known[name])) for name in _WORDS}
    return pd.DataFrame(table | {name: np.array(numbers[name], float) for name in _NUMBERS})


def _labels(runs: pd.DataFrame) -> pd.Categorical:
    """Methods by name, and by name and solver where one was run with several."""
    method, solver = runs["method"].astype(str), runs["solver"].astype(str)
    several = solver.groupby(method).transform("nunique") > 1
    return pd.Categorical(method.where(~several | (solver == ""), method + " [" + solver + "]"))


def _wrong(runs: pd.DataFrame, maximise: np.ndarray) -> pd.Series:
    """Claims that other runs or the library refute: optimal what is not, a bound beyond a solution, or the other way.

    An objective that is optimal within the gap asked for may be that far, relative to itself, from the best known.
    """
    behind = statistics.gap_to_bound(runs["objective"], runs["best_objective"], maximise)
    worse = (runs["status"] == "optimal") & (np.nan_to_num(behind) > runs["gap_limit"] + OBJECTIVE_TOL)
    beyond = statistics.gap_to_bound(runs["best_objective"], runs["bound"], ~maximise)
    under = statistics.gap_to_bound(runs["objective"], runs["library_bound"], ~maximise)
    impossible = (np.nan_to_num(beyond) > OBJECTIVE_TOL) | (np.nan_to_num(under) > OBJECTIVE_TOL)
    return worse | (impossible & (runs["status"] != statistics.REFERENCE))


def parsed(text: str) -> dict[str, Any]:
    """A mapping of the store from its JSON text."""
    found: dict[str, Any] = json.loads(text or "{}")
    return found
