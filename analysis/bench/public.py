"""Many solves from Python: ``bench``, ``report`` and ``frame``, as the commands of these names do them."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ddlopt.models.errors import OptionError
from ddlopt.solvers.contracts import Limits, Result

if TYPE_CHECKING:
    import pandas as pd


def bench(
    suite: str | Sequence[str],
    store: str | Path,
    methods: str | Sequence[str] | None = None,
    *,
    seeds: Iterable[int] = (0,),
    solver: str | Sequence[str] = "highs",
    time_limit: float = 60.0,
    gap: float = 1e-4,
    threads: int = 1,
    memory_bytes: int | None = None,
    jobs: int | None = None,
    on_result: Callable[[Any], None] | None = None,
) -> "pd.DataFrame":
    """Answer the instances of suites with many methods and seeds, each solve in a process of its own.

    What the store has already is not done again; whatever ends this process loses the running solves at most.

    Parameters
    ----------
    suite : str or sequence of str
        Suites (``"quick"``, ``"default"``, ``"library"``), patterns of library names, or files.
    store : str or Path
        The SQLite file that results go to; made if it is not there.
    methods : str or sequence of str, optional
        Names, names with options (``"link-exchange:effort=0.1"``), ``"auto"``, ``"all-heuristics"`` or ``"all-exact"``;
        None: what the suite suggests.
    seeds : iterable of int
    solver : str or sequence of str
        Solvers behind exact methods.
    time_limit : float
        Seconds for each solve.
    gap : float
        Relative gap at which a search may stop.
    threads : int
        Of each solve.
    memory_bytes : int, optional
        Of each solve.
    jobs : int, optional
        Solves at a time; None: one a core.
    on_result : callable, optional
        Called with each :class:`~ddlopt.analysis.bench.rows.Finished` once it is stored.

    Returns
    -------
    DataFrame
        :func:`frame` of the whole store.

    Raises
    ------
    UnknownNameError, InstanceError, OptionError
        Before anything is solved.
    StoreError
        If the file is no store, or another sweep writes to it.
    """
    from ddlopt.analysis.bench.store import Store
    from ddlopt.analysis.bench.suites import members
    from ddlopt.analysis.bench.sweep import Sweep
    from ddlopt.analysis.bench.tasks import plan
    from ddlopt.analysis.warm_up import warm_up

    names, suggested = members(_words(suite))
    limits = Limits(time_limit, gap, threads)
    tasks = plan(names, _words(methods) if methods else suggested, seeds, limits, _words(solver), memory_bytes)
    warm_up({module for task in tasks for module in task.kernels}, jobs)
    with Store(store) as opened:
        for finished in Sweep(tasks, opened, jobs or max(1, (os.cpu_count() or 1) // threads)).run():
            if on_result is not None:
                on_result(finished)
    return frame(store)


def report(
    store: str | Path,
    folder: str | Path,
    *,
    title: str = "Benchmark report",
    baseline: str | None = None,
    target_gap: float = 0.01,
    pictures: int = 100,
    save_charts: Sequence[str] = (),
) -> Path:
    """Write the results of a store as a web site; its first page.

    Parameters
    ----------
    store, folder : str or Path
        What :func:`bench` wrote; a new folder, or that of a report.
    title : str
    baseline : str, optional
        Method that the others of its family are tested against; None: the one that is best most often.
    target_gap : float
        Gap to the best known that counts as reached.
    pictures : int
        Solutions to draw at most, one an instance.
    save_charts : sequence of str
        Formats in which charts are saved, too: ``png``, ``pdf``, ``svg``.

    Raises
    ------
    StoreError
        If there are no results, or the file is no store.
    OptionError
        If the folder cannot be written to or holds something else, or an option is out of its range.
    """
    from ddlopt.analysis.bench.report import write_report
    from ddlopt.analysis.bench.store import Store

    with Store(store, write=False) as opened:
        return write_report(opened, folder, title, baseline, target_gap, pictures, save_charts)


def frame(results: str | Path | Iterable[Result]) -> "pd.DataFrame":
    """One row a solve: of a store, or of what :func:`~ddlopt.api.compare` and :func:`~ddlopt.api.solve` gave.

    Parameters
    ----------
    results : str, Path, or iterable of Result
        A store has limits, versions and machines of every run, too; what nests (traces, details) is left out.

    Raises
    ------
    StoreError
        If the file is no store.
    OptionError
        If it is anything else.
    """
    if isinstance(results, str | Path):
        from ddlopt.analysis.bench.export import frame as frame_of
        from ddlopt.analysis.bench.store import Store

        with Store(Path(results), write=False) as opened:
            return frame_of(opened)
    import pandas as pd

    given = [results] if isinstance(results, Result) else list(results)
    odd = next((each for each in given if not isinstance(each, Result)), None)
    if odd is not None:
        raise OptionError(f"frame takes the file of a store or results of solves, got {type(odd).__name__}")
    rows = []
    for each in given:
        data = each.to_data()
        plain = {key: value for key, value in data.items() if not isinstance(value, dict | list)}
        rows.append(plain | {"seed": each.provenance.get("seed"), "solver": each.provenance.get("solver")})
    return pd.DataFrame.from_records(rows)


def _words(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)
