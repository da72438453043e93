"""Columns of other people's CSV files, said in terms of our own: ``--set columns=...`` of format ``jobs-csv``.

A mapping gives for each of our columns what it is made of: the name of a column of the file, or numbers and columns
with ``+ - * /`` and brackets (``end_time - start_time``, ``plan_gpu / 100``). A cell may be a number or a date; dates
become seconds. Instead, a column may be looked up by another: ``{"application": {"bert": 7200, "cifar10": 900}}``.
:data:`LAYOUTS` has mappings of public traces, by name.

Files of traces list what never ran or had no accelerator. Rows without workers, without a time of arrival or without a
length are left out, and counted.
"""

import ast
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ddlopt.instances.readers.traces.csv_rows import Header, Row, csv_rows
from ddlopt.models.errors import InstanceError, OptionError

Source = str | Mapping[str, Mapping[str, float]]
"""An expression, or a column with the numbers that its values stand for."""
_WORDS = ("name", "model")
"""Columns of ours that are no numbers."""
DEMAND = "demand_"
"""With which columns of what a worker takes begin."""
_WORKERS = ("workers", "max_workers")
_LENGTHS = ("duration_s", "minibatches")
_BLANK = ("", "nan", "null", "none", "na", "n/a", "nat")
_BINARY: Mapping[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True)
class Layout:
    """The mapping of a public trace.

    Parameters
    ----------
    columns : mapping
    header : tuple of str
        Names of the file's columns, which it comes without.
    note : str
        What of it is no figure of the file.
    """

    columns: Mapping[str, Source]
    header: tuple[str, ...] = ()
    note: str = ""


# GPU time of the applications of Pollux (A. Qiao et al., OSDI 2021, table 1) by its classes of 0-1, 1-10, 10-100 and
# more hours: the geometric middles, of the first from 0.1 on.
_POLLUX_GPU_S: Mapping[str, float] = {
    application: 3600 * hours
    for hours, applications in ((0.3, ("cifar10", "ncf")), (3, ("bert", "deepspeech2")), (30, ("yolov3",)))
    for application in applications
} | {"imagenet": 3600 * 300.0}
_POLLUX = Layout(
    {
        "name": "name",
        "arrival_s": "time",
        "max_workers": "num_replicas",
        "gpu_s": {"application": _POLLUX_GPU_S},
        "duration_s": "gpu_s / num_replicas",
    },
    note="GPU time by application, the middle of its class in Pollux's paper, which is synthetic",
)
LAYOUTS: Mapping[str, Layout] = {
    "pollux": _POLLUX,
    "sia": _POLLUX,
    "tiresias": Layout(
        {"name": "job_id", "arrival_s": "submit_time", "workers": "num_gpu", "duration_s": "duration"}
    ),
    "helios": Layout({"name": "job_id", "arrival_s": "submit_time", "workers": "gpu_num", "duration_s": "duration"}),
    "alibaba-2020": Layout(
        {
            "name": "job_name",
            "arrival_s": "start_time",
            "duration_s": "end_time - start_time",
            "workers": "inst_num",
            "demand_gpu": "plan_gpu / 100",
        },
        header=(
            "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu",
            "gpu_type",
        ),
        note="a worker for each instance of a task, with its part of a GPU",
    ),
    "alibaba-2025": Layout(
        {
            "name": "instance_sn",
            "arrival_s": "creation_time",
            "duration_s": "deletion_time - creation_time",
            "workers": "gpu_request",
        },
        note="instances without a GPU are left out",
    ),
}  # fmt: skip
"""By the name that ``columns`` takes: workloads of Pollux and Sia, jobs of Tiresias' simulator, ``cluster_log.csv`` of
Helios, ``pai_task_table.csv`` of Alibaba's trace of 2020, the trace of disaggregated recommendation of 2025."""


@dataclass
class Columns:
    """A mapping, with notes on the rows that it was used for.

    Parameters
    ----------
    sources : mapping
        What each column is made of: those of ours, and others in between.
    known : tuple of str
        Columns of ours.
    header : tuple of str
        If the file has none of its own.
    notes : list of str
        For the source of an instance.
    """

    sources: Mapping[str, Source]
    known: tuple[str, ...]
    header: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, option: str | Mapping[str, Source], known: Iterable[str]) -> "Columns":
        """The mapping that the option ``columns`` says.

        Parameters
        ----------
        option : str or mapping
            ``helios``, ``name=job,arrival_s=submitted``, both with a comma between, or an object.
        known : iterable of str
            Columns of ours.

        Raises
        ------
        OptionError
            If it is none.
        """
        sources: dict[str, Source] = {}
        made = cls(sources, (*known,))
        for target, source in _said(option):
            if not source:
                layout = _layout(target)
                sources |= layout.columns
                made.header = layout.header
                made.notes += [layout.note] if layout.note else []
            elif made.is_ours(target):
                sources[target] = source
            else:
                listed = ", ".join((*made.known, f"{DEMAND}gpu, …"))
                raise OptionError(f"columns: there is no column '{target}' of ours; there are: {listed}")
        return made

    def is_ours(self, column: str) -> bool:
        """Whether it is one of our columns, not one in between."""
        return column in self.known or (column.startswith(DEMAND) and len(column) > len(DEMAND))

    @property
    def targets(self) -> list[str]:
        """Columns of ours that are made."""
        return [target for target in self.sources if self.is_ours(target)]

    def rows(self, path: Path) -> tuple[Header, list[Row]]:
        """Our header, and rows with our columns; those that are no jobs are counted in the notes."""
        theirs, rows = csv_rows(path, self.header)
        made: dict[str, Callable[[Row], str | None]] = {}
        for target, source in self.sources.items():
            made[target] = _made(target, source, (*theirs.columns, *made))
        theirs.needs(())  # each once
        found, left = [], 0
        for row in rows:
            cells = dict(row.cells)
            for target, make in made.items():
                value = make(Row(row.path, row.number, cells))
                cells[target] = "" if value is None else value
            mapped = {target: cells[target] for target in self.targets}
            if _is_job(mapped):
                found.append(Row(row.path, row.number, mapped))
            else:
                left += 1
        if left and not found:
            raise InstanceError(
                f"{path}: none of its {left} rows has workers, a time of arrival and a length in these columns"
            )
        if left:
            self.notes.append(f"left out {left} rows without workers, a time of arrival or a length")
        header = Header(path, [*dict.fromkeys(("name", *self.targets))])
        return header, _named(found)


def _said(option: str | Mapping[str, Source]) -> Iterator[tuple[str, Source]]:
    """Columns with what they are made of; a layout with nothing."""
    if isinstance(option, str):
        for part in option.split(","):
            target, equals, source = (each.strip() for each in part.partition("="))
            if not target or (equals and not source):
                raise OptionError(f"columns: '{part}' is no OURS=THEIRS; such as arrival_s=submit_time,workers=gpus")
            yield target, source
        return
    for target, given in option.items():
        if isinstance(given, str) and given.strip():
            yield target, given.strip()
        elif isinstance(given, int | float) and not isinstance(given, bool):
            yield target, repr(given)
        elif isinstance(given, Mapping) and len(given) == 1 and all(map(_is_table, given.values())):
            yield target, given
        else:
            raise OptionError(
                f"columns: {target} is {given!r}; expected a column, an expression of columns and numbers, or "
                '{"column": {"its value": number}}'
            )


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(each, int | float) and not isinstance(each, bool) for each in value.values()
    )


def _layout(name: str) -> Layout:
    if name not in LAYOUTS:
        raise OptionError(
            f"columns: there is no layout '{name}'; there are: {', '.join(LAYOUTS)}; or write OURS=THEIRS"
        )
    return LAYOUTS[name]


def _made(target: str, source: Source, columns: Sequence[str]) -> Callable[[Row], str | None]:
    """How to make a cell of ours from a row of theirs."""
    if not isinstance(source, str):
        ((column, table),) = source.items()
        _require(target, [column], columns)
        return lambda row: _looked_up(row, column, table)
    if target in _WORDS:
        _require(target, [source], columns)
        return lambda row: row.cells[source]
    if source in columns:
        return lambda row: _text(_number(row, source))
    tree = _parsed(target, source)
    _require(target, [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)], columns)
    return lambda row: _text(_value(tree, row, target))


def _require(target: str, wanted: Sequence[str], columns: Sequence[str]) -> None:
    missing = [column for column in wanted if column not in columns]
    if missing:
        raise OptionError(
            f"columns: {target} is made of '{missing[0]}', which the file has not; its header has: {', '.join(columns)}"
        )


def _parsed(target: str, source: str) -> ast.expr:
    """The expression, of names, numbers and the four operations only."""
    try:
        tree = ast.parse(source, mode="eval").body
        allowed = all(isinstance(node, _ALLOWED) for node in ast.walk(tree))
        numbers = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        allowed, numbers = False, []
    if not allowed or any(isinstance(each, bool) or not isinstance(each, int | float) for each in numbers):
        raise OptionError(f"columns: {target} is '{source}'; expected columns and numbers with + - * / and brackets")
    return tree


_ALLOWED = (ast.BinOp, ast.UnaryOp, ast.USub, ast.Name, ast.Load, ast.Constant, *_BINARY)


def _value(node: ast.expr, row: Row, target: str) -> float | None:
    """None where a cell is blank."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=column):
            return _number(row, column)
        case ast.UnaryOp(operand=operand):
            inner = _value(operand, row, target)
            return None if inner is None else -inner
        case ast.BinOp(left=left, op=op, right=right):
            one, other = _value(left, row, target), _value(right, row, target)
            if one is None or other is None or (isinstance(op, ast.Div) and not other):
                return None
            return _BINARY[type(op)](one, other)
    raise AssertionError(node)


def _number(row: Row, column: str) -> float | None:
    """A cell as a number or, of a date, as seconds; None if it is blank."""
    text = row.cells[column].strip()
    if text.lower() in _BLANK:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return seconds_of(text)
    except ValueError:
        raise row.wrong(column, "expected a number, or a date such as 2020-04-01 08:00:00") from None


def seconds_of(date: str) -> float:
    """Seconds since 1970; a date without a zone is taken as of UTC.

    Raises
    ------
    ValueError
        If it is no date.
    """
    found = datetime.fromisoformat(date)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _looked_up(row: Row, column: str, table: Mapping[str, float]) -> str | None:
    text = row.cells[column].strip()
    if text not in table:
        raise row.wrong(column, f"columns has a number for: {', '.join(table)}")
    return _text(table[text])


def _text(value: float | None) -> str | None:
    return None if value is None else repr(float(value))


def _is_job(cells: Mapping[str, str]) -> bool:
    """Whether it has a time of arrival, workers and a length, as far as the mapping has these."""
    if not cells.get("arrival_s", "0") or not float(cells.get("demand_gpu", 1) or 0):
        return False
    for choices in (_WORKERS, _LENGTHS):
        values = [float(cells[column] or 0) for column in choices if column in cells]
        if values and not any(value > 0 for value in values):
            return False
    return True


def _named(rows: list[Row]) -> list[Row]:
    """Rows whose names differ: where they have none, or share one, by their number."""
    counts = Counter(row.cells.get("name", "") for row in rows)
    for row in rows:
        name = row.cells.get("name", "").strip()
        if not name or counts[row.cells["name"]] > 1:
            row.cells["name"] = f"{name} row {row.number}".strip()
    return rows
