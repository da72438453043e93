"""The command ``convert``, instances from files in formats that others defined, and the help of formats."""

import inspect
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ddlopt import completion
from ddlopt.arguments import ClusterFile, Out, Settings, emit, options_of, say, tell


class FormatsCommand(TyperCommand):
    """A command whose help ends with all formats and their options; the readers are imported for it only."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        self.epilog = "\n\n".join(["Formats, and what --set takes for each:", *self.formats()])
        super().format_help(ctx, formatter)

    def formats(self) -> list[str]:
        """A line for each format."""
        return _formats()


class KindsCommand(TyperCommand):
    """A command whose help ends with the options of the kind that is asked for, or with the kinds of the family."""

    _words: tuple[str, ...] = ()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep what is asked for: help comes before anything is read."""
        self._words = tuple(args)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        self.epilog = "\n\n".join(_kinds(*_family_and_kind(self._words)))
        super().format_help(ctx, formatter)


def _family_and_kind(words: Sequence[str]) -> tuple[str | None, str | None]:
    """The family and the kind among words of a command line."""
    from ddlopt.models.catalogue import FAMILY_NAMES

    joined = [part for word in words for part in word.split("=", 1)]
    kind = next((value for word, value in pairwise(joined) if word == "--kind"), None)
    return next((word for word in joined if word in FAMILY_NAMES), None), kind


def _kinds(family: str | None, kind: str | None) -> list[str]:
    from ddlopt.instances.generators import kinds
    from ddlopt.instances.generators.told import told

    if family is None:
        return ["ddlopt generate FAMILY --help lists the kinds of a family."]
    if kind not in kinds(family):
        return [f"Kinds: {', '.join(kinds(family))}.", f"ddlopt generate {family} --kind K --help tells their options."]
    lines = [f"What --set takes for {kind}:"]
    for option in told(family, kind):
        default = "" if option.default is None else f"={_written(option.default)}"
        lines.append(f"{option.name}{default}: {option.meaning}".rstrip(": "))
    return [*lines, "and any field of the instance that is not generated (ddlopt schema)."]


class PlanFormatsCommand(FormatsCommand):
    """The same of formats for plans."""

    def formats(self) -> list[str]:
        """A line for each format."""
        from ddlopt.instances import writers

        lines = []
        for name, summary in writers.summaries().items():
            options = writers.options_of(name).items()
            lines.append(f"{name}: {summary} ({', '.join(_told(*option) for option in options) or 'no options'})")
        return lines


def _formats() -> list[str]:
    from ddlopt.instances import readers

    lines = []
    for name in readers.FORMATS:
        options = readers.options_of(name).items()
        lines.append(f"{name}: {', '.join(_told(*option) for option in options) or 'no options'}")
    lines.append(
        f"{readers.CLUSTER_FORMAT}: what all_reduce_perf prints; makes a cluster's file, from --cluster if given"
    )
    return lines


def _told(option: str, default: Any) -> str:
    if default is inspect.Parameter.empty:
        return f"{option} (needed)"
    return option if default is None else f"{option}={_written(default)}"


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


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
    """Convert a file in somebody else's format into an instance; which options there are depends on the format."""
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


def profile_script() -> None:
    """Print a script that measures a training job in PyTorch; it needs nothing of ddlopt."""
    from importlib.resources import files

    print(files("ddlopt.instances.scripts").joinpath("profile_job.py").read_text(encoding="utf-8"), end="")
