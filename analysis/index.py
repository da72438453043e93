"""``INDEX.md`` of the library: best known solutions and bounds of all bundled instances, from the records alone."""

from collections.abc import Iterator
from pathlib import Path

from ddlopt import instances
from ddlopt.analysis import history
from ddlopt.analysis.listing import write_listing
from ddlopt.analysis.tables import NONE, gap_text, objective_text
from ddlopt.analysis.views import sizes
from ddlopt.instances import library
from ddlopt.instances.index import PROVEN
from ddlopt.instances.library import certificates
from ddlopt.instances.library.records import COMBINATORIAL, Record, Run, read
from ddlopt.models.catalogue import FAMILY_NAMES, family
from ddlopt.models.contracts import Instance
from ddlopt.models.files import write_whole
from ddlopt.solvers.contracts import relative_gap

_COMMAND = "python -m ddlopt.analysis.records --index"
_HEADERS = ("objective", "bound", "gap", "found by", "version", "date", "bound by", "proven by", "challenged")
_RIGHT = ("objective", "bound", "gap")


def index_text() -> str:
    """The index; the same text whenever instances and records are the same."""
    parts = [
        "# Best known solutions\n\n"
        "Objectives are what exact arithmetic says of the stored solutions, rounded to six digits; a bound holds for "
        "every solution. *Found by* is a run that reached the objective, with its version and day, *bound by* what "
        f"proved the bound: `{COMBINATORIAL}` needs no solver. *Proven by* is the evidence of what is proven optimal: "
        "a bound recomputed in rational numbers (*combinatorial, exact*), a certificate that the checker accepts "
        "(*exact certificate*), or optimal *up to floating point* only. *Challenged* is the day on which methods "
        f"were last tried against both. `{_COMMAND}` writes this page anew from `FAMILY/records.json`, where seeds, "
        "times, methods and all digits are.\n"
    ]
    parts += ["".join(_section(name)) for name in FAMILY_NAMES if instances.names(name)]
    return "\n".join(parts)


def write_index() -> bool:
    """Write the index, ``index.json`` and ``history.json`` beside the families; whether one of them changed."""
    path, text = index_file(), index_text()
    listed = write_listing() | history.write()
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return listed
    write_whole(path, text)
    return True


def index_file() -> Path:
    """Where the index is."""
    return library.library_folder(FAMILY_NAMES[0]).parent / "INDEX.md"


def gap_of(known: Record | None, instance: Instance) -> float | None:
    """Relative gap between the best known solution and the best bound; None where one of them is missing."""
    if known is None or known.found is None or known.bound is None:
        return None
    return relative_gap(known.found.objective, known.bound.value, instance.sense)


def method_text(run: Run | None) -> str:
    """The method of a run, with its seed where that is not 0."""
    if run is None:
        return NONE
    return f"{run.by}, seed {run.seed}" if run.seed else run.by


def run_text(run: Run) -> str:
    """The method of a run, by which version and when, as far as it is known."""
    version = None if run.version is None else f"ddlopt {run.version}"
    return ", ".join(str(part) for part in (method_text(run), version, run.date) if part is not None)


def _section(name: str) -> Iterator[str]:
    """Heading and table of a family."""
    known = read(name)
    rows, proven = [], 0
    headers: dict[str, None] = {}
    for full in instances.names(name):
        instance = instances.load(full)
        stem = full.split("/")[1]
        record = known.get(stem)
        gap = gap_of(record, instance)
        proven += gap is not None and gap <= PROVEN
        own = {header: str(size) for header, size in sizes(instance).items()} | {"sense": instance.sense[:3]}
        headers |= dict.fromkeys(own)
        proof = certificates.label(full, instance.digest) if gap is not None and gap <= PROVEN else NONE
        figures = _figures(record, instance.objective_unit, gap) | {"proven by": proof}
        rows.append({"instance": f"[{stem}]({full}.json)"} | own | figures)
    columns = ("instance", *headers, *_HEADERS)
    yield f"## {name}\n\n{len(rows)} instances: {family(name).title}. "
    yield f"{proven} of the solutions are proven optimal to {gap_text(PROVEN)}.\n\n"
    yield _line(columns)
    yield _line("---:" if column in _RIGHT else "---" for column in columns)
    yield from (_line(row.get(column, NONE) for column in columns) for row in rows)


def _figures(record: Record | None, unit: str, gap: float | None) -> dict[str, str]:
    found, bound = (None, None) if record is None else (record.found, record.bound)
    objective = None if found is None else found.objective
    return {
        "objective": objective_text(objective, unit),
        "bound": objective_text(None if bound is None else bound.value, unit, like=objective),
        "gap": gap_text(gap),
        "found by": method_text(found),
        "version": (found and found.version) or NONE,
        "date": str((found and found.date) or NONE),
        "bound by": method_text(bound),
        "challenged": str((record and record.challenged and record.challenged.date) or NONE),
    }


def _line(cells: Iterator[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(text.replace('|', chr(92) + '|') for text in cells)} |\n"
