"""The command ``convert``: instances from files in formats that others defined."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ddlopt.cli.shared import completion
from ddlopt.cli.shared.arguments import ClusterFile, Out, Settings, emit, options_of, say, tell
from ddlopt.cli.shared.formats import FormatsCommand, option_text, told_line, value_after


class ReadFormatsCommand(FormatsCommand):
    """With the formats that are read."""

    def formats(self) -> list[str]:
        """A line for each format."""
        from ddlopt.instances import readers

        lines = []
        for name in readers.FORMATS:
            options = readers.options_of(name).items()
            lines.append(f"{name}: {', '.join(option_text(*option) for option in options) or 'no options'}")
        lines.append(
            f"{readers.CLUSTER_FORMAT}: what all_reduce_perf prints; makes a cluster's file, from --cluster if given"
        )
        lines.append("ddlopt convert --from FORMAT --help tells what they mean.")
        return lines

    def of_format(self) -> list[str]:
        """What the options of the format after ``--from`` mean."""
        from ddlopt.instances import readers
        from ddlopt.instances.readers.told import title, told

        name = value_after(self.asked, "--from")
        if name not in readers.FORMATS:
            return []
        lines = [f"{name}: {title(name)}"]
        options = told(name)
        if not options:
            return [*lines, "It takes no options."]
        own = [option.name for option in options if option.name in _OWN]
        apart = f"; {', '.join(own)} may also be given as {' and '.join(map(_flag, own))}" if own else ""
        return [*lines, f"What --set takes for {name}{apart}:", *(told_line(*option) for option in options)]


_OWN = ("virtual_cluster", "start", "hours", "seed")
"""Options of formats that the command has by itself."""


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    source_format: Annotated[
        str,
        typer.Option(
            "--from", metavar="FORMAT", help="The format of FILE; see below.", autocompletion=completion.formats
        ),
    ],
    virtual_cluster: Annotated[str | None, typer.Option(metavar="V", help="Only this part of a trace.")] = None,
    start: Annotated[str | None, typer.Option(metavar="WHEN", help="Where in a trace to begin.")] = None,
    hours: Annotated[float | None, typer.Option(metavar="H", help="How much of a trace to take.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="K", help="Seed of what the file leaves open.")] = None,
    cluster: ClusterFile = None,
    settings: Settings = None,
    out: Out = None,
) -> None:
    """Convert a file in somebody else's format into an instance; its options depend on the format."""
    import ddlopt
    from ddlopt.instances.readers import CLUSTER_FORMAT

    if source_format == CLUSTER_FORMAT:
        _measured(file, cluster, out, [virtual_cluster, start, hours, seed, settings])
        return
    given = {"virtual_cluster": virtual_cluster, "start": start, "hours": hours, "seed": seed, "cluster": cluster}
    emit(ddlopt.convert(file, source_format, **options_of(settings, **given)).to_json(), out)


def _measured(file: Path, cluster: str | None, out: Path | None, others: list[Any]) -> None:
    """The cluster that explains measured all-reduces best, and on standard error how well."""
    from ddlopt.instances.clusters import measured
    from ddlopt.models.files import write_whole

    if any(each is not None for each in others):
        raise typer.BadParameter("nccl-tests takes --cluster and --out only")
    fit = measured(file, cluster)
    for line in fit.lines():
        tell(line)
    text = fit.cluster.to_toml()
    if out is None or str(out) == "-":
        say(text.rstrip())
    else:
        write_whole(out, text)
