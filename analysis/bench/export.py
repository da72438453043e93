"""The runs of a store as a table that other programs read."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from ddlopt.analysis.bench.figures.tabular import without_formulas
from ddlopt.analysis.bench.store import NESTED, Store
from ddlopt.analysis.tables import lost
from ddlopt.models.errors import OptionError
from ddlopt.models.files import replacing

FORMATS = (".csv", ".parquet")
# Rows in memory at once: some tens of megabytes.
_CHUNK = 20_000


def frame(store: Store, nested: bool = False) -> pd.DataFrame:
    """One row a run; instances' senses, units and best known objectives beside them, and the error of plans.

    Parameters
    ----------
    store : Store
    nested : bool
        With the columns of ``NESTED``, as JSON text.
    """
    return pd.DataFrame.from_records(list(_rows(store, nested)))


def write(store: Store, path: str | Path) -> None:
    """Write all runs as CSV or Parquet; the file appears whole or not at all.

    Raises
    ------
    OptionError
        If the path's ending is not one of ``FORMATS``, or what writes Parquet is not installed.
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise OptionError(f"{path}: a table's name must end in {' or '.join(FORMATS)}")
    table = frame(store, nested=True)
    with replacing(path) as temporary:
        if path.suffix == ".csv":
            without_formulas(table).to_csv(temporary, index=False)
            return
        try:
            table.to_parquet(temporary, index=False)
        except ImportError:
            raise OptionError(f"{path}: to write Parquet, install pyarrow: pip install 'ddlopt[parquet]'") from None


def _rows(store: Store, nested: bool) -> Iterator[dict[str, Any]]:
    instances = store.instances()
    for run in store.runs():
        of = instances[run["instance_digest"]]
        error = lost(run["family"], of["unit"], run["details"])
        for name in NESTED:
            if nested:
                run[name] = json.dumps(run[name])
            else:
                del run[name]
        beside = {} if error is None else {"error": error}
        yield run | beside | {name: of[name] for name in ("sense", "unit", "best_objective")}
