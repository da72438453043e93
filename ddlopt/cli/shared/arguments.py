"""What the commands share: their arguments, lists with commas, exit codes, and lines to the person who asked.

Nothing heavy is imported here: ``ddlopt --help`` needs all of it.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ddlopt.cli.shared import completion

NO_ANSWER, BAD_INPUT, INTERRUPTED = 1, 2, 130
"""Exit codes beside 0, which is an answer."""

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE",
        help="A bundled instance (see `ddlopt list`) or a .json file; - is standard input.",
        autocompletion=completion.instances,
    ),
]
Solver = Annotated[
    str | None, typer.Option(metavar="S", help="Solver behind exact methods: highs, or any that Pyomo knows.")
]
TimeLimit = Annotated[float | None, typer.Option(metavar="S", help="Seconds after which the best found is returned.")]
Proof = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A proof, as `certify` writes it, with or without a solution."),
]
ProofTimeLimit = Annotated[
    float | None, typer.Option(metavar="S", help="Stop checking a proof after S seconds, without a verdict.")
]
Vipr = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a proof by a tree here in VIPR's format, if it holds.")
]
Gap = Annotated[float, typer.Option(metavar="G", help="Relative gap at which a search may stop.")]
Threads = Annotated[int, typer.Option(metavar="N", help="Threads that a solver may use.")]
Seed = Annotated[int, typer.Option(metavar="K", help="Seed of everything random.")]
Memory = Annotated[
    float | None,
    typer.Option(
        metavar="GB", help="Memory (address space) of each solve; one that needs more ends with an error in one line."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write here instead of standard output.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any other field or option, e.g. optics=duplex."),
]
ClusterFile = Annotated[
    str | None,
    typer.Option("--cluster", metavar="NAME|FILE", help="Servers and networks from a .toml file, or a bundled one."),
]
FormulationName = Annotated[
    str,
    typer.Option(
        metavar="F",
        help="An exact method that is a formulation, e.g. rings-and-routes; another word has the line that lists them.",
    ),
]
StoreFile = Annotated[Path, typer.Argument(metavar="STORE", help="As `ddlopt bench` writes it.")]

# A slip of the pen such as 1-1e9 must not fill the memory before it is refused.
_MOST_SEEDS = 1_000_000
_OWN = ("family", "family_name", "kind", "path", "source_format")
"""What ``--set`` cannot set, as the commands have arguments for it."""


def tell(line: str) -> None:
    """Print a line on standard error, and nothing that could steer a terminal."""
    from ddlopt.models.errors import plain

    print(plain(line), file=sys.stderr, flush=True)


def say(text: object) -> None:
    """Print lines on standard output, and nothing that could steer a terminal."""
    from ddlopt.models.errors import plain_lines

    print(plain_lines(str(text)))


def emit(text: str, out: Path | None) -> None:
    """Write JSON to a file, or to standard output where there is none or it is ``-``."""
    if out is None or str(out) == "-":
        from ddlopt.analysis.texts import printable_json

        print(printable_json(text))
        return
    from ddlopt.models.files import write_whole

    write_whole(out, text + "\n")


def words(text: str) -> list[str]:
    """The words of a list with commas, at least one; ``name:a=1,b=2`` is one of them."""
    from ddlopt.solvers.names import listed

    found = listed(text)
    if not found:
        raise typer.BadParameter(f"'{text}' names nothing")
    return found


def numbers(text: str) -> list[int]:
    """Numbers of a list such as ``0,1,5-9``."""
    found: list[int] = []
    for word in words(text):
        first, dash, last = word.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()) or (dash and int(last) < int(first)):
            raise typer.BadParameter(f"--seeds {text}: write whole numbers or ranges, e.g. 0,1,2 or 0-9")
        if len(found) + int(last or first) - int(first) >= _MOST_SEEDS:
            raise typer.BadParameter(f"--seeds {text}: these are more than {_MOST_SEEDS} seeds")
        found += range(int(first), int(last or first) + 1)
    return found


def options_of(settings: Sequence[str] | None, **given: Any) -> dict[str, Any]:
    """The options that were given, by name: those of their own (None: not given) and those of ``--set``."""
    options = {name: value for name, value in given.items() if value is not None}
    for setting in settings or ():
        name, value = _setting(setting)
        if name in options or name in _OWN:
            raise typer.BadParameter(f"--set {setting}: {name} is given elsewhere on the command line")
        options[name] = value
    return options


def _setting(text: str) -> tuple[str, Any]:
    """``NAME=VALUE``, where the value is JSON or else a word."""
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()):
        raise typer.BadParameter(f"--set {text}: write NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
