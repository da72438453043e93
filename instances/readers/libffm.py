"""Click logs in the format of libffm: ``label field:feature:value …``, a row a line.

A feature with a value other than 0 has a parameter that the row touches, whatever its field. A worker's batch is some
consecutive rows, and an iteration some consecutive batches, one of each worker.
"""

import gzip
import math
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from ddlopt.instances.options import at_least, checked, one_of, positive
from ddlopt.models.aggregation.family import AggregationProblem
from ddlopt.models.aggregation.hot.instance import HotInstance, HotJob, HotSwitch
from ddlopt.models.aggregation.registers.instance import RegisterInstance
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.models.reading import UnreadableError, decoded, opened

_LONGEST_LINE = 2**20
"""Bytes of a row; logs have a few thousand."""


@checked
def read_libffm(
    path: str | Path,
    *,
    problem: str = "hot",
    batch: int = 10,
    rows: int | None = None,
    workers: int = 4,
    memory: float = 0.05,
    measured: bool = True,
    parameters: int = 32,
    arrays: int = 8,
    entries: int | None = None,
    capacity: float = 1.5,
    goal: str = "packets",
) -> AggregationProblem:
    """Read a click log; ``.gz`` is unpacked. Rows that fill no batch or iteration at the end are left out.

    Parameters
    ----------
    path : str or Path
    problem : {"hot", "registers"}
        ``hot``: which parameters are on a switch. The file is read row by row, and only counts are kept.
        ``registers``: in which register arrays they are; the first half of the batches counts, and the second is held
        out. All batches are kept.
    batch : int
        Rows of a worker's batch.
    rows : int, optional
        How many are read; without, all.
    workers : int
        For ``hot``.
    memory : float
        For ``hot``: registers of the switch, relative to the parameters that the rows touch.
    measured : bool
        For ``hot``: whether what a parameter saves is counted over iterations, or derived from its frequency.
    parameters : int
        For ``registers``: how many are hot, by the batches that count.
    arrays, entries, goal
        For ``registers``, fields of the instance; without ``entries``, a packet has as many as there are arrays.
    capacity : float
        For ``registers``: of all arrays together, relative to the parameters.

    Returns
    -------
    HotInstance or RegisterInstance
        Parameters are numbered from the hottest on; ``labels`` are the numbers of the features.

    Raises
    ------
    InstanceError
        If the file cannot be read, has a broken line (named by its number), or too few rows.
    """
    one_of("problem", problem, ("hot", "registers"))
    for option, value in (("batch", batch), ("workers", workers), ("parameters", parameters), ("arrays", arrays)):
        at_least(option, value, 1)
    if rows is not None:
        at_least("rows", rows, 1)
    path = Path(path)
    batches = _batches(path, batch, rows)
    if problem == "hot":
        positive("memory", memory)
        return _hot(path, batches, batch, workers, memory, measured)
    at_least("capacity", capacity, 1)
    one_of("goal", goal, ("packets", "collisions"))
    return _registers(path, list(batches), batch, parameters, arrays, entries, capacity, goal)


def _hot(
    path: Path, batches: Iterator[set[int]], batch: int, workers: int, memory: float, measured: bool
) -> HotInstance:
    touched: Counter[int] = Counter()
    reached: Counter[int] = Counter()
    iterations = 0
    while len(own := list(islice(batches, workers))) == workers:
        for each in own:
            touched.update(each)
        reached.update(set().union(*own))
        iterations += 1
    if not touched:
        raise InstanceError(
            f"{path}: too few rows, or none with a value other than 0: an iteration of {workers} workers has "
            f"{workers * batch} rows; lower batch or workers"
        )
    features = _hottest(touched)
    messages = np.array([touched[feature] for feature in features], dtype=np.float64)
    saved = (messages - np.array([reached[feature] for feature in features])) / iterations
    job = HotJob(
        name=path.name.split(".")[0],
        workers=workers,
        frequencies=messages / (workers * iterations),
        saved_messages=saved if measured else None,
        labels=tuple(map(str, features)),
    )
    return HotInstance(
        name=f"{job.name}-w{workers}-b{batch}",
        source=f"click log {path.name}: {iterations} iterations of {workers} workers with {batch} rows each",
        jobs=(job,),
        switches=(HotSwitch(name="switch", registers=int(memory * len(features))),),
    )


def _registers(
    path: Path,
    batches: list[set[int]],
    batch: int,
    parameters: int,
    arrays: int,
    entries: int | None,
    capacity: float,
    goal: str,
) -> RegisterInstance:
    half = len(batches) // 2
    if not half:
        raise InstanceError(f"{path}: too few rows for 2 batches of {batch}; lower batch")
    touched = Counter(feature for each in batches[:half] for feature in each)
    if len(touched) < parameters:
        raise OptionError(
            f"parameters is {parameters}, but the first {half} batches touch {len(touched)}; lower parameters or batch"
        )
    features = _hottest(touched)[:parameters]
    place = {feature: number for number, feature in enumerate(features)}
    hot = [sorted(place[feature] for feature in each if feature in place) for each in batches]
    stem = path.name.split(".")[0]
    return RegisterInstance.from_data(
        {
            "name": f"{stem}-n{parameters}-r{arrays}-b{batch}",
            "source": f"click log {path.name}: {len(batches)} batches of {batch} rows, the second half held out",
            "parameters": parameters,
            "labels": [str(feature) for feature in features],
            "arrays": arrays,
            "capacity": max(math.ceil(parameters / arrays), round(capacity * parameters / arrays)),
            "entries": arrays if entries is None else entries,
            "batches": hot[:half],
            "held_out": hot[half:],
            "goal": goal,
        }
    )


def _hottest(touched: Counter[int]) -> list[int]:
    """Features, those touched by the most batches first, then by number."""
    return sorted(touched, key=lambda feature: (-touched[feature], feature))


def _batches(path: Path, batch: int, rows: int | None) -> Iterator[set[int]]:
    """Features that each batch touches."""
    log = islice(rows_of(path), rows)
    while len(own := list(islice(log, batch))) == batch:
        yield set().union(*own)


def rows_of(path: Path) -> Iterator[set[int]]:
    """Features of each row whose value is not 0; blank lines are skipped."""
    number = 0
    try:
        with opened(path) as packed, gzip.open(packed) if path.suffix == ".gz" else packed as file:
            for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE + 1), b""), start=1):
                if len(line) > _LONGEST_LINE:
                    raise UnreadableError(f"line {number} has more than {_LONGEST_LINE} bytes")
                if line.strip():
                    yield _features(f"{path}: line {number}", decoded(line))
    except (OSError, UnicodeDecodeError, EOFError, zlib.error, UnreadableError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        after = f", after line {number}" if number else ""
        raise InstanceError(f"{path}: cannot be read{after}: {reason}") from None


def _features(where: str, line: str) -> set[int]:
    label, *entries = line.split()
    try:
        float(label)
    except ValueError:
        raise InstanceError(f"{where}: the label is {_short(label)}; expected a number") from None
    found = set()
    for entry in entries:
        try:
            field, feature, value = entry.split(":")
            if int(field) < 0 or int(feature) < 0 or not math.isfinite(float(value)):
                raise ValueError
        except ValueError:
            raise InstanceError(
                f"{where}: {_short(entry)} is not field:feature:value, two whole numbers of at least 0 and a number"
            ) from None
        if float(value) != 0:
            found.add(int(feature))
    return found


def _short(word: str) -> str:
    return repr(word if len(word) <= 40 else word[:37] + "…")
