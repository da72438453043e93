"""The runs that pages quote, kept in the repository: ``docs/results/runs/FAMILY.csv``, a line a run.

What runs have in common (day, versions, machine, threads) stands once, in ``origins.json``, under the name that the
column ``origin`` has. Lines are sorted, so that a new run changes its own line and no other. A line speaks of the
instance with its ``digest`` alone.
"""

import csv
import io
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from ddlopt import instances
from ddlopt.analysis.bench import Store
from ddlopt.instances.library import natural
from ddlopt.models.contracts import Instance
from ddlopt.models.files import write_whole
from ddlopt.solvers.contracts import Status

FOLDER = Path(__file__).resolve().parents[1] / "docs/results/runs"
DIGITS = 12
"""Of an instance's digest."""
PARTS = {"of topology": "gap_of_topology", "of strategies": "gap_of_strategies"}
"""Columns on what the gap to a run's own bound consists of, and the details of its result that have them."""
VERSIONS = ("ddlopt", "highspy", "pyomo", "numpy", "python")
_STORED = (
    *("family", "instance", "instance_digest", "method", "solver", "seed", "status", "objective", "bound", "checked"),
    *("runtime_s", "time_limit_s", "gap_limit", "threads", "machine", "finished", "versions", "details"),
)


@dataclass(frozen=True)
class Run:
    """A solve; None for what there is not, or nobody kept."""

    instance: str
    digest: str
    method: str
    seed: int
    status: str
    objective: float | None
    bound: float | None
    runtime_s: float | None
    time_limit_s: float | None
    of_topology: float | None
    of_strategies: float | None
    origin: str

    @property
    def key(self) -> tuple[str, str, int]:
        return self.instance, self.method, self.seed

    @property
    def answered(self) -> bool:
        """Whether it is a solution of the instance; figures for another network are none."""
        return self.objective is not None and self.status != Status.REFERENCE


_NUMBERS = {"seed": int} | dict.fromkeys(
    ("objective", "bound", "runtime_s", "time_limit_s", "of_topology", "of_strategies"), float
)


def read(family: str, folder: Path = FOLDER) -> list[Run]:
    """The runs of a family that are on instances as the library has them now."""
    return [run for run in _all(family, folder) if _holds(family, run)]


def _holds(family: str, run: Run) -> bool:
    name = f"{family}/{run.instance}"
    return name in instances.names(family) and digest_of(name) == run.digest


@cache
def instance_of(name: str) -> Instance:
    """A bundled instance, read once."""
    return instances.load(name)


@cache
def digest_of(name: str) -> str:
    """The digest of a bundled instance, as far as it stands in the files."""
    return instance_of(name).digest[:DIGITS]


def _all(family: str, folder: Path) -> list[Run]:
    path = folder / f"{family}.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [Run(**{name: _value(name, text) for name, text in row.items()}) for row in rows]


def _value(name: str, text: str) -> Any:
    if name not in _NUMBERS:
        return text
    return _NUMBERS[name](text) if text else None


def write(family: str, runs: Iterable[Run], folder: Path = FOLDER) -> None:
    """Write all runs of a family, sorted."""
    out = io.StringIO()
    table = csv.DictWriter(out, [field.name for field in fields(Run)], lineterminator="\n")
    table.writeheader()
    for run in sorted(runs, key=lambda run: (natural(run.instance), run.method, run.seed)):
        table.writerow(asdict(run))
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / f"{family}.csv", out.getvalue())


def origins(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """What runs have in common, by the name that their column ``origin`` has."""
    path = folder / "origins.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def take(store: Store, note: str = "", folder: Path = FOLDER) -> dict[str, int]:
    """Keep the runs of a store on bundled instances, in place of older ones; how many of each family.

    A run takes the place of that of the same method and seed.
    """
    named = origins(folder)
    new: dict[str, dict[tuple[str, str, int], Run]] = {}
    for row in sorted(store.rows(_STORED), key=lambda row: row["finished"]):
        name = f"{row['family']}/{row['instance']}"
        if name in instances.names() and instances.load(name).digest == row["instance_digest"]:
            run = _run(row, _origin(row, note, named))
            new.setdefault(row["family"], {})[run.key] = run
    for family, runs in new.items():
        old = [run for run in _all(family, folder) if run.key not in runs]
        write(family, [*old, *runs.values()], folder)
    _write_origins(named, folder)
    return {family: len(runs) for family, runs in new.items()}


def _run(row: Mapping[str, Any], origin: str) -> Run:
    answered = row["checked"] or row["status"] == Status.REFERENCE
    details = json.loads(row["details"])
    solver = "" if row["solver"] in ("", "highs") else f" ({row['solver']})"
    parts = {column.replace(" ", "_"): details.get(detail) for column, detail in PARTS.items()}
    return Run(
        row["instance"], row["instance_digest"][:DIGITS], row["method"] + solver, row["seed"], row["status"],
        row["objective"] if answered else None, row["bound"], round(row["runtime_s"], 3), row["time_limit_s"],
        **parts, origin=origin,
    )  # fmt: skip


def _origin(row: Mapping[str, Any], note: str, named: dict[str, dict[str, Any]]) -> str:
    """The name of what the run has in common with others, a new one if need be."""
    versions, machine = json.loads(row["versions"]), json.loads(row["machine"] or "{}")
    day = row["finished"][:10]
    common = {"date": day, **{name: versions[name] for name in VERSIONS if name in versions}}
    common |= {"threads": row["threads"], "gap_limit": row["gap_limit"]}
    common |= {"machine": f"{machine['cpu']}, {machine['cores']} cores"} if machine else {}
    common |= {"note": note} if note else {}
    for name, known in named.items():
        if known == common:
            return name
    name = next(name for name in (f"{day}-{letter}" for letter in "abcdefghijklmnopqrstuvwxyz") if name not in named)
    named[name] = common
    return name


def _write_origins(named: Mapping[str, Any], folder: Path) -> None:
    used = {run.origin for path in folder.glob("*.csv") for run in _all(path.stem, folder)}
    lines = [f" {json.dumps(name)}: {json.dumps(named[name])}" for name in sorted(used)]
    write_whole(folder / "origins.json", "{\n" + ",\n".join(lines) + "\n}\n")


def objectives(runs: Iterable[Run]) -> dict[tuple[str, str], float]:
    """The objective by instance and method: the median over the seeds."""
    found: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        if run.objective is not None:
            found.setdefault((run.instance, run.method), []).append(run.objective)
    return {key: statistics.median(values) for key, values in found.items()}


def facts(runs: Sequence[Run], folder: Path = FOLDER) -> str:
    """How runs were made, in sentences: limits, threads, days, versions, machine."""
    named = origins(folder)
    used = [named[name] for name in sorted({run.origin for run in runs})]
    limits = [run.time_limit_s for run in runs if run.time_limit_s is not None]
    least, most = min(limits, default=None), max(limits, default=None)
    time = "no time limit" if least is None else f"{least:g} s" if least == most else f"{least:g} to {most:g} s"
    said = [f"Time limit of a run: {time}"]
    for name, words in (("gap_limit", "gap {}"), ("threads", "{} thread")):
        values = sorted({each[name] for each in used if name in each})
        said[0] += "".join(
            f", {words.format(value)}{'s' if value != 1 and name == 'threads' else ''}" for value in values
        )
    days = sorted({each["date"] for each in used})
    said.append(f"Runs of {days[0]}" + (f" to {days[-1]}" if len(days) > 1 else ""))
    versions = sorted({each["ddlopt"] for each in used if "ddlopt" in each})
    said[-1] += f", ddlopt {', '.join(versions)}" if versions else ""
    said += sorted({each["machine"] for each in used if "machine" in each})
    said += sorted({each["note"].removesuffix(".") for each in used if "note" in each})
    return ". ".join(said) + "."
