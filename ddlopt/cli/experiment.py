"""The commands that run experiments: ``experiment gossip``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ddlopt.cli.shared.arguments import INTERRUPTED, numbers, say, words

app = typer.Typer(help="Run an experiment, and write its tables and pictures.")


@app.callback()
def _experiments() -> None:
    pass


@app.command()
def gossip(
    workers: Annotated[int, typer.Option(metavar="N", help="Workers.")] = 8,
    graph: Annotated[
        str, typer.Option(metavar="G", help="A shape (complete, cycle, torus, …), a gossip instance or a .json file.")
    ] = "complete",
    degree: Annotated[int, typer.Option(metavar="D", help="Of graphs that are drawn: regular, random, geometric.")] = 3,
    shards: Annotated[str, typer.Option(metavar="S", help="iid, or sorted: each worker knows few classes.")] = "iid",
    policies: Annotated[
        str | None, typer.Option(metavar="P;P;…", help="NAME, NAME:VALUE or NAME:OPTION=VALUE,…; by default all kinds.")
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="K,K,…", help="Seeds, e.g. 0,1,2 or 0-9.")] = "0-4",
    epochs: Annotated[int, typer.Option(metavar="E", help="Passes over each worker's shard.")] = 120,
    batch: Annotated[int, typer.Option(metavar="B", help="Samples of a worker in a step.")] = 16,
    hidden: Annotated[str, typer.Option(metavar="H,H,…", help="Widths of the network's hidden layers.")] = "32",
    rate: Annotated[float, typer.Option(metavar="R", help="The learning rate is R / (1 + t / T) in step t.")] = 0.3,
    decay: Annotated[float, typer.Option(metavar="T", help="See --rate.")] = 200.0,
    ratio: Annotated[
        float, typer.Option(metavar="C", help="Time to send a model over that of a step's computation.")
    ] = 1.3,
    data: Annotated[str, typer.Option(metavar="D", help="digits, breast_cancer, wine or iris.")] = "digits",
    control: Annotated[
        bool, typer.Option(help="Also run gossip with a fixed period and no more traffic, for every policy.")
    ] = True,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Write tables (.csv) and pictures (.png) here.")
    ] = None,
) -> None:
    """Train networks by decentralised SGD on real data, under policies of exchange.

    Prints accuracy, traffic and time of each policy, means over seeds with 95 % confidence intervals, and compares each
    with a fixed period of no more traffic.
    """
    from ddlopt.analysis.gossip_training.policies import policy_of
    from ddlopt.analysis.gossip_training.study import DEFAULT, Study
    from ddlopt.analysis.gossip_training.training import Training

    if out is not None:
        _folder(out)
    chosen = [policy_of(text) for text in (DEFAULT if policies is None else _pieces(policies))]
    training = Training(
        _network(graph, workers, degree), data, shards, epochs, batch,  # type: ignore[arg-type]
        tuple(_whole(width) for width in words(hidden)), rate, decay,
    )  # fmt: skip
    found, interrupted = Study(training, ratio), False
    try:
        with _Bar() as bar:
            found.run(chosen, numbers(seeds), control, bar)
    except KeyboardInterrupt:  # policies that were done until then are still worth printing
        interrupted = True
    if found.runs:
        _print(found)
        for path in _write(found, out) if out is not None else ():
            say(path)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _pieces(text: str) -> list[str]:
    found = [piece.strip() for piece in text.split(";") if piece.strip()]
    if not found:
        raise typer.BadParameter(f"--policies '{text}' names nothing; write e.g. 'period:1;adaptive:0.03'")
    return found


def _whole(text: str) -> int:
    if not text.isdigit():
        raise typer.BadParameter(f"--hidden: '{text}' is no width; write whole numbers, e.g. 32 or 64,32")
    return int(text)


def _folder(path: Path) -> None:
    from ddlopt.models.errors import OptionError
    from ddlopt.models.files import writable

    if path.exists() and not path.is_dir():
        raise OptionError(f"{path} is a file; name a folder")
    path.mkdir(exist_ok=True) if path.parent.is_dir() else writable(path)
    writable(path / "policies.csv")


def _network(graph: str, workers: int, degree: int) -> Any:
    """A graph by its shape, or that of an instance."""
    import numpy as np

    import ddlopt
    from ddlopt.instances.generators.gossip.graphs import SHAPES, network_of
    from ddlopt.models.errors import OptionError

    if graph in SHAPES:
        if workers < 2:
            raise OptionError(f"workers is {workers}; gossip needs at least 2")
        return network_of(np.random.default_rng(0), graph, workers, degree)
    if "/" not in graph and not graph.endswith(".json"):
        raise OptionError(
            f"there is no graph '{graph}'; expected one of {', '.join(SHAPES)}, or an instance such as "
            "gossip/cvx-n8-averaging"
        )
    instance = ddlopt.load(graph)
    network = getattr(instance, "network", None)
    if instance.family != "gossip" or network is None:
        raise OptionError(f"'{graph}' has no graph of workers; name an instance of the family gossip")
    return network


class _Bar:
    """Progress over runs, on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[now]}", markup=False),
        )
        self._progress = Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
        self._task = self._progress.add_task("", total=None, now="")
        self._done = 0

    def __enter__(self) -> "_Bar":
        self._progress.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._progress.stop()

    def __call__(self, label: str, left: int) -> None:
        from ddlopt.models.errors import plain

        self._done += 1
        self._progress.update(self._task, completed=self._done, total=self._done + left, now=plain(label))


def _print(found: Any) -> None:
    from rich.table import Table

    from ddlopt.analysis.gossip_training.study_text import comparison_cells, row_cells, title
    from ddlopt.cli.shared.display import out_console

    console = out_console()
    table = Table(title=title(found), title_justify="left")
    names = ("policy", "traffic", "worker %", "averaged %", "distance", "MB sent", "time", "with barrier")
    for name in names:
        table.add_column(name, justify="left" if name == "policy" else "right", no_wrap=True)
    for row in found.rows():
        table.add_row(*row_cells(row))
    console.print(table)
    for what, comparisons in (
        ("against a fixed period with no more traffic", found.against_controls()),
        ("against gossip in every step", found.against_gossip()),
    ):
        if comparisons:
            table = Table(title=f"{what}: points of accuracy, paired by seed", title_justify="left")
            for name in ("policy", "against", "traffic", "its traffic", "worker", "averaged"):
                justify = "left" if name in ("policy", "against") else "right"
                table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
            for each in comparisons:
                table.add_row(*comparison_cells(each))
            console.print(table)


def _write(found: Any, folder: Path) -> list[Path]:
    from ddlopt.analysis import plots
    from ddlopt.analysis.gossip_training import study_plots as gossip_study_plots
    from ddlopt.models.files import write_whole

    tables = {"policies": found.csv_rows(), "comparisons": found.csv_comparisons(), "moments": found.csv_moments()}
    paths = []
    for name, text in tables.items():
        paths.append(folder / f"{name}.csv")
        write_whole(paths[-1], text)
    for name, picture in (("traffic", gossip_study_plots.over_traffic), ("time", gossip_study_plots.over_time)):
        paths.append(folder / f"{name}.png")
        plots.save(picture(found), paths[-1])
    return paths
