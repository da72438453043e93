"""The tables of a report."""

import json
from collections.abc import Iterable, Sequence

import pandas as pd
from markupsafe import Markup

from ddlopt.analysis.bench.figures import statistics, tabular
from ddlopt.analysis.bench.report.cells import Cell, Column, number, table
from ddlopt.analysis.bench.report.contents import Listed, Overview
from ddlopt.analysis.bench.report.names import family_file
from ddlopt.analysis.bench.report.summary import WRITTEN, Summary, gap_or_infinite
from ddlopt.analysis.tables import NONE, gap_text, objective_text, time_text
from ddlopt.analysis.texts import status_text

GAP = "from the objective to the bound, relative to the objective"
_HELP = {
    "instances": "instances that the method was run on",
    "answered": "part of the runs with a solution, or a proof that there is none",
    "within target": "part of the runs that reached the target gap to the best known",
    "wins": "instances on which no other method's typical answer is better; ties count for all",
    "mean gap to best": "of the answered runs, to the best known objective",
    "mean gap to bound": "of the answered runs that have a bound, to their own bound",
    "time (SGM)": "shifted geometric mean of the runtimes; a run without an answer counts as its limit",
    "time to target (PAR-10)": "mean time to the target gap; a run that did not get there counts as ten limits",
    "primal integral": "mean primal gap over the time of a run (Berthold 2013)",
    "dual integral": "mean dual gap over the time of a run",
    "p": "Wilcoxon signed-rank test, two-sided",
    "p (Holm)": "corrected for the number of methods",
}


def methods(frame: pd.DataFrame, target: float) -> Markup:
    """The methods of a family."""
    return _figures("methods", f"Methods; the target is a gap of {100 * target:g} % to the best known", frame)


def pairs(summary: Summary) -> Markup | None:
    """The methods against the baseline; None if there is none but it."""
    if summary.pairs.empty:
        return None
    return _figures("pairs", f"Instances won, tied and lost against {summary.baseline}", summary.pairs)


def summaries(overviews: "Iterable[Overview]") -> Markup:
    """The main figures of all methods of all families."""
    wanted = ["method", "runs", "answered", "within target", "wins", "mean gap to best", "time (SGM)"]
    columns = [Column("family", choice=True), *_columns(wanted)]
    rows = []
    for each in overviews:
        if each.summary is not None:
            for row in _rows(each.summary.methods[wanted]):
                rows.append([Cell(each.family, None, family_file(each.family)), *row])
    return table("summary", "Methods by family", columns, rows)


def _figures(name: str, caption: str, frame: pd.DataFrame) -> Markup:
    return table(name, caption, _columns(list(frame.columns)), _rows(frame))


def _columns(names: Sequence[str]) -> list[Column]:
    return [Column(name, name != "method", help=_HELP.get(name, "")) for name in names]


def _rows(frame: pd.DataFrame) -> list[list[Cell]]:
    names = list(frame.columns)
    return [
        [
            Cell(str(value)) if name == "method" else number(tabular.cell(value, name, WRITTEN), value)
            for name, value in zip(names, row, strict=True)
        ]
        for row in frame.itertuples(index=False, name=None)
    ]


def instances(listed: Sequence[Listed]) -> Markup:
    """The instances of a family."""
    columns = [
        Column("instance"), Column("size"), Column("sense", choice=True), Column("best known", True),
        Column("best bound", True, help="of the library and of the runs"), Column("gap", True, help=GAP),
        Column("best method", choice=True), Column("runs", True),
        Column("answered", True),
    ]  # fmt: skip
    rows = [
        [
            Cell(each.title, None, each.file), Cell(each.sizes), Cell(each.sense),
            number(objective_text(each.best, each.unit), each.best),
            number(objective_text(each.bound, each.unit, like=each.best), each.bound),
            number(gap_text(each.best_gap), each.best_gap),
            Cell(each.best_method or NONE), number(str(each.runs), each.runs),
            number(str(each.answered), each.answered),
        ]
        for each in listed
    ]  # fmt: skip
    return table("instances", "Instances and their best known objectives", columns, rows)


_RUN = (
    Column("method", choice=True), Column("seed", True), Column("status", choice=True), Column("objective", True),
    Column("bound", True), Column("gap", True, help="to its own bound, relative to the run's objective"),
    Column("gap to best", True, help="to the best known, relative to the run's objective"), Column("time", True),
    Column("memory", True, help="most that the process held"), Column("message"),
)  # fmt: skip


def runs(frame: pd.DataFrame, unit: str) -> Markup:
    """All runs on an instance."""
    names = [
        "label", "seed", "status", "evidence", "objective", "bound", "gap_to_bound", "gap_to_best", "runtime_s",
        "peak_memory_bytes", "message", "current", "wrong",
    ]  # fmt: skip
    told = bool(frame["error"].gt(0).any())
    columns = [*_RUN[:4], *[Column("error", True, help="what the plan loses")] * told, *_RUN[4:]]
    rows = []
    for (
        error,
        label,
        seed,
        status,
        evidence,
        objective,
        bound,
        gap,
        distance,
        time_s,
        memory,
        message,
        current,
        wrong,
    ) in zip(*(frame[name] for name in ("error", *names)), strict=True):
        notes = [] if current else ["superseded by a later run"]
        notes += ["contradicted by another result"] if wrong else []
        distance = float("nan") if status == statistics.REFERENCE else distance
        size = None if objective != objective else objective
        rows.append([
            Cell(label), number(f"{seed:.0f}", seed), Cell(status_text(status, evidence)),
            number(objective_text(size, unit), objective),
            *[number(NONE if error != error else f"{error:.3g}", error)] * told,
            number(objective_text(None if bound != bound else bound, unit, like=size), bound),
            number(gap_or_infinite(gap), gap), number(gap_or_infinite(distance), distance),
            number(time_text(time_s, digits=3), time_s),
            number(_memory(memory), memory), Cell("; ".join([*notes, *([message] if message else [])])),
        ])  # fmt: skip
    return table("runs", "All runs", columns, rows)


def _memory(size_bytes: float) -> str:
    return NONE if size_bytes != size_bytes else f"{size_bytes / 1e6:.0f} MB"


def statuses(overviews: "Sequence[Overview]", names: Sequence[str]) -> Markup:
    """How many runs of each family ended how."""
    columns = [Column("family"), Column("instances", True), Column("methods", True), Column("runs", True)]
    columns += [Column(name.replace("_", " "), True) for name in names]
    rows = []
    for each in overviews:
        counts = each.runs["status"].astype(str).value_counts()
        numbers = [len(each.instances), each.runs["label"].nunique(), len(each.runs)]
        numbers += [int(counts.get(name, 0)) for name in names]
        rows.append(
            [Cell(each.family, None, family_file(each.family)), *(number(str(count), count) for count in numbers)]
        )
    return table("statuses", "Runs by family and status", columns, rows)


def wrong(overviews: "Iterable[Overview]") -> Markup | None:
    """Runs whose claims other results refute; None if there are none."""
    rows = []
    for each in overviews:
        found = each.runs[each.runs["wrong"]]
        listed = {entry.digest: entry for entry in each.instances}
        for digest, label, seed, status, objective, bound, best in zip(
            *(found[name] for name in (
                "instance_digest", "label", "seed", "status", "objective", "bound", "best_objective",
            )), strict=True,
        ):  # fmt: skip
            entry = listed[str(digest)]
            figures = (
                number(objective_text(None if value != value else value, entry.unit), value)
                for value in (objective, bound, best)
            )
            name = Cell(f"{each.family}/{entry.title}", None, entry.file)
            rows.append([name, Cell(label), number(f"{seed:.0f}", seed), Cell(status), *figures])
    if not rows:
        return None
    columns = [
        Column("instance"), Column("method", choice=True), Column("seed", True), Column("status", choice=True),
        Column("objective", True), Column("bound", True), Column("best known", True),
    ]  # fmt: skip
    return table("wrong", "Contradictions", columns, rows)


def counted(name: str, pairs: Sequence[tuple[str, int]]) -> Markup:
    """What there is and how many runs have it."""
    rows = [[Cell(text), number(str(count), count)] for text, count in pairs]
    return table(name, f"Runs by {name}", [Column(name), Column("runs", True)], rows)


def options(frame: pd.DataFrame) -> Markup:
    """The methods with all their options."""
    grouped = frame.groupby(["family", "method", "solver", "options"], observed=True).size()
    rows = [
        [Cell(str(family)), Cell(str(method)), Cell(str(solver) or NONE), Cell(_options(str(text))),
         number(str(count), count)]
        for (family, method, solver, text), count in grouped.items()
    ]  # fmt: skip
    columns = [Column("family", choice=True), Column("method"), Column("solver"), Column("options")]
    return table("options", "Methods and their options", [*columns, Column("runs", True)], rows)


def _options(text: str) -> str:
    return ", ".join(f"{name} = {json.dumps(value)}" for name, value in json.loads(text or "{}").items()) or NONE
