"""The command ``results``: a store as a table."""

from pathlib import Path
from typing import Annotated

import typer

from ddlopt.cli.shared.arguments import StoreFile
from ddlopt.cli.shared.skipped import tell_skipped


def results(
    store: StoreFile,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="A .csv or .parquet file.")],
) -> None:
    """Write the results of a store as a table for other programs."""
    from ddlopt.analysis.bench.export import write
    from ddlopt.analysis.bench.store import Store

    with Store(store, write=False) as opened:
        write(opened, out)
        tell_skipped(opened)
