"""The command ``bench``: many solves, in a store."""

import math
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ddlopt.cli.shared.arguments import INTERRUPTED, numbers, say, tell, words

if TYPE_CHECKING:
    from ddlopt.analysis.bench.tasks import Task

Suites = Annotated[
    list[str],
    typer.Argument(
        metavar="SUITE…", help="tiny, standard, hard, open, default, …; drawn:SEED; patterns of names; files."
    ),
]


def bench(
    suite: Suites,
    store: Annotated[
        Path, typer.Option(metavar="FILE", help="File for the results; runs that it already holds are not repeated.")
    ],
    methods: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Methods, auto, all-heuristics, all-exact, or NAME:OPTION=VALUE."),
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="K,K,…", help="Seeds, e.g. 0,1,2 or 0-9.")] = "0",
    solvers: Annotated[str, typer.Option(metavar="S,S,…", help="Solvers behind exact methods.")] = "highs",
    time_limit: Annotated[float, typer.Option(metavar="S", help="Seconds for each solve.")] = 60.0,
    gap: Annotated[float, typer.Option(metavar="G", help="Relative gap at which a search may stop.")] = 1e-4,
    threads: Annotated[int, typer.Option(metavar="N", min=1, help="Threads of each solve.")] = 1,
    memory: Annotated[float | None, typer.Option(metavar="GB", help="Memory of each solve.")] = None,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Solves at a time; by default one a core.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Scheduler of a Dask cluster, e.g. tcp://host:8786.")
    ] = None,
    again: Annotated[
        str | None,
        typer.Option(metavar="STATUS,…", help="Repeat runs that ended with one of these, e.g. crashed,error."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would be done, and stop.")] = False,
) -> None:
    """Solve the instances of sets with many methods and seeds; every result is stored as soon as it is there."""
    from ddlopt.analysis.bench.store import Store
    from ddlopt.analysis.bench.suites import members
    from ddlopt.analysis.bench.sweep import Sweep
    from ddlopt.analysis.bench.tasks import plan
    from ddlopt.analysis.warm_up import warm_up
    from ddlopt.solvers.contracts import Limits
    from ddlopt.solvers.dask_workers import executor_of

    if memory is not None and not 0 < memory < math.inf:
        raise typer.BadParameter(f"--memory {memory}: write a positive number of gigabytes")
    if not 0 < time_limit < math.inf:
        raise typer.BadParameter(f"--time-limit {time_limit}: write a positive number of seconds")
    names, suggested = members(suite)
    tasks = plan(
        names,
        words(methods) if methods else suggested,
        numbers(seeds),
        Limits(time_limit, gap, threads),
        words(solvers),
        None if memory is None else int(memory * 1e9),
    )
    if dry_run:
        print(_planned(tasks, len(names), store, words(again) if again else [], time_limit))
        return
    if cluster is None:
        warm_up({module for task in tasks for module in task.kernels}, jobs)
    with executor_of(cluster) as (executor, width), Store(store) as opened:
        if again:
            opened.forget(words(again))
        width = jobs or width or max(1, (os.cpu_count() or 1) // threads)
        sweep = Sweep(tasks, opened, width, executor)
        try:
            counts = _watched(sweep)
        except KeyboardInterrupt:
            tell(f"interrupted; {sweep.done} of {len(tasks)} results are in {store}, the same command goes on")
            raise typer.Exit(INTERRUPTED) from None
    told = ", ".join(f"{count} {status}" for status, count in counts.most_common()) or "nothing was left to do"
    say(f"{len(tasks)} results in {store}; now: {told}")


def _planned(tasks: "list[Task]", instances: int, path: Path, again: list[str], time_limit: float) -> str:
    """What a sweep would do: how many solves, and how many of them its store does not have."""
    from ddlopt.analysis.bench.store import Store

    done = 0
    if path.exists():
        with Store(path, write=False) as opened:
            kept = {row["key"] for row in opened.rows(["key", "status"]) if row["status"] not in again}
        done = sum(task.key in kept for task in tasks)
    missing = len(tasks) - done
    told = f"{len(tasks)} solves of {instances} instances"
    told += f", of which {path} has {done}; {missing} are missing" if done else ""
    return f"{told}, at most {missing * time_limit / 3600:.1f} h of solving"


def _watched(sweep: Any) -> Counter[str]:
    """Run the sweep under a progress bar on a terminal; how many solves ended how."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TimeElapsedColumn
    from rich.text import Text

    class Now(ProgressColumn):
        """What runs, looked up whenever the line is drawn."""

        max_refresh = 0.5

        def render(self, task: Any) -> Text:
            return Text(running_text(sweep), no_wrap=True, overflow="ellipsis")

    counts: Counter[str] = Counter()
    console = Console(stderr=True)
    columns = BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), Now()
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        bar = progress.add_task("", total=len(sweep.tasks), completed=sweep.done)
        for finished in sweep.run():
            counts[finished.run["status"]] += 1
            progress.update(bar, completed=sweep.done)
    return counts


def running_text(sweep: Any) -> str:
    """The time that is left and what runs: before any solve has ended, the time that its limits allow."""
    from ddlopt.analysis.tables import time_text
    from ddlopt.models.errors import plain

    left_s = sweep.expected_s
    told = f"at most {time_text(sweep.longest_s)} left" if left_s is None else f"about {time_text(left_s)} left"
    return plain(f"{told}: " + "; ".join(f"{task.instance} {task.method}" for task in [*sweep.running.values()]))
