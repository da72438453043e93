"""The command ``report``: a store as a web site."""

from pathlib import Path
from typing import Annotated

import typer

from ddlopt.cli.shared.arguments import StoreFile, say, words
from ddlopt.cli.shared.skipped import tell_skipped


def report(
    store: StoreFile,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="A new folder, or that of a report.")],
    title: Annotated[str, typer.Option(metavar="TEXT", help="Title of the report.")] = "Benchmark report",
    baseline: Annotated[
        str | None, typer.Option(metavar="M", help="Method that the others of its family are tested against.")
    ] = None,
    target_gap: Annotated[
        float, typer.Option(metavar="G", help="Gap to the best known that counts as reached.")
    ] = 0.01,
    pictures: Annotated[int, typer.Option(metavar="N", help="Solutions to draw at most, one an instance.")] = 100,
    save_charts: Annotated[
        str | None, typer.Option(metavar="F,F,…", help="Save all charts as files, too: png, pdf, svg.")
    ] = None,
) -> None:
    """Write the results of a store as a web site: statistics, profiles, pictures, provenance."""
    from ddlopt.analysis.bench.report import write_report
    from ddlopt.analysis.bench.store import Store

    with Store(store, write=False) as opened:
        say(write_report(opened, out, title, baseline, target_gap, pictures, words(save_charts) if save_charts else ()))
        tell_skipped(opened)
