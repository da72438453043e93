"""The public functions; :mod:`ddlopt` hands them on, and the command line is a thin shell over them."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ddlopt import instances
from ddlopt.analysis.compare import PairProgress, refuted, run
from ddlopt.models.catalogue import FAMILY_NAMES, family, solution_of
from ddlopt.models.contracts import Evaluation, Instance, Solution
from ddlopt.models.errors import OptionError
from ddlopt.models.sizes import require_seed
from ddlopt.solvers import catalogue
from ddlopt.solvers.accepted_error import accepted, require_acceptable
from ddlopt.solvers.backends import backend
from ddlopt.solvers.choice import (
    by_solver,
    method_for,
    opened_by,
    require_solver_use,
    require_use,
    within,
    written_out,
)
from ddlopt.solvers.contracts import Limits, Method, ProgressCallback, Result, kernels_of
from ddlopt.solvers.names import AUTO
from ddlopt.solvers.wrappers.guarded import memory_limit


def families() -> tuple[str, ...]:
    """Names of the families of problems."""
    return FAMILY_NAMES


def names(family_name: str | None = None) -> tuple[str, ...]:
    """Names of the bundled instances, of one family or of all, as :func:`load` takes them."""
    return instances.names(family_name)


def methods(family_name: str) -> tuple[str, ...]:
    """Names of a family's methods, as :func:`solve` takes them."""
    family(family_name)
    return catalogue.method_names(family_name)


def describe(family_name: str) -> tuple[tuple[str, str, str], ...]:
    """(name, kind, one line) of a family's methods; the kind is ``exact``, ``heuristic`` or ``reference``."""
    family(family_name)
    return tuple((entry.name, entry.kind, entry.summary) for entry in catalogue.entries(family_name))


def default_method(instance: Instance | str | Path, solver: str | None = None, start: bool = False) -> str:
    """The method that :func:`solve` takes by itself: the family's best exact one for the instance's size.

    With a solver, or with a start, it is one that uses it.
    """
    return catalogue.default_method(load(instance), solver, start)


def load(instance: Instance | str | Path) -> Instance:
    """An instance by its library name (``"topology/danoint"``) or from a ``.json`` or ``.json.gz`` file.

    Raises
    ------
    UnknownNameError
        If there is neither a bundled instance nor a file of that name.
    InstanceError
        If the file does not hold a valid instance.
    """
    return instances.load(instance)


def solve(
    instance: Instance | str | Path,
    method: str | Method | None = None,
    *,
    solver: str | None = None,
    time_limit: float | None = None,
    gap: float = 1e-4,
    threads: int = 1,
    seed: int = 0,
    start: Solution | str | Path | None = None,
    start_from: str | Method | None = None,
    memory: float | None = None,
    accept_error: float | None = None,
    progress: ProgressCallback | None = None,
) -> Result:
    """Solve one instance; the solution has been through the independent check before you see it.

    Parameters
    ----------
    instance : Instance, str or Path
        See :func:`load`.
    method : str or Method, optional
        A name from :func:`methods`, a :class:`~ddlopt.solvers.contracts.Method` of your own, or None for
        :func:`default_method`; ``result.method`` says which was taken.
    solver : str, optional
        The solver behind an exact method: ``"highs"``, which is taken by itself, or any other that Pyomo knows by that
        name. With one, :func:`default_method` is the best that uses a solver.
    time_limit : float, optional
        Wall-clock seconds after which the best found so far is returned.
    gap : float
        Relative gap at which the search may stop.
    threads : int
        Threads that a solver may use. More than one, a seed other than 0 and a start are refused where the method has
        no use for them.
    seed : int
        Seed of everything random.
    start : Solution, str or Path, optional
        A solution to begin from (or its file); :func:`default_method` is then one that uses it.
    start_from : str or Method, optional
        A method that is asked first, for at most a third of the time limit, and whose solution is the start; what it
        proves counts too.
    memory : float, optional
        Gigabytes of address space that the solve, then a process of its own, may have.
    accept_error : float, optional
        Error up to which a compression plan is an answer where the instance has no ``error_budget``; ``math.inf``: any.
        None: 0.1, a tenth of the energy of all gradients, for :func:`default_method`; with a method of your choice the
        result's message tells of more.
    progress : callable, optional
        Called with a :class:`~ddlopt.solvers.contracts.TracePoint` as incumbent and bound improve: claims of the
        method, as what is checked is the result.

    Returns
    -------
    Result
        Also where there is no solution: its status then is ``infeasible``, if that is proven, or ``no_solution``, also
        where it loses more than ``accept_error``; the message says what to set.

    Raises
    ------
    UnknownNameError
        If the instance, method or solver does not exist.
    NotApplicableError
        If the method, or that of ``start_from``, does not cover the instance.
    OptionError
        If a limit or the seed is out of its range, there are two starts, or the method has no use for an option.
    SolverError
        If the solver is missing or fails, or claims what the check refutes, or memory is short.
    """
    return answered(
        load(instance), method, solver=solver, limits=_limits(time_limit, gap, threads, seed), seed=seed, start=start,
        start_from=start_from, memory=memory, accept_error=accept_error, watched=lambda _: progress,
    )  # fmt: skip


def answered(
    problem: Instance,
    method: str | Method | None,
    *,
    solver: str | None,
    limits: Limits,
    seed: int,
    start: Solution | str | Path | None,
    start_from: str | Method | None,
    memory: float | None,
    accept_error: float | None,
    watched: Callable[[str], ProgressCallback | None],
) -> Result:
    """What :func:`solve` does. Each name becomes a method once, here, and the method is passed on.

    Parameters
    ----------
    watched : callable
        Given the name of the method that is taken, who is told of its progress.
    """
    require_seed(seed)
    memory_bytes = memory_limit(memory)
    require_acceptable(problem, accept_error)
    if start_from is not None and start is not None:
        raise OptionError("start and start_from cannot both be given")
    if solver is not None:
        catalogue.require_solver(solver)
    started = start is not None or start_from is not None
    chosen = method_for(method, problem, solver, started)
    opening = None if start_from is None else method_for(start_from, problem, solver)
    if solver is not None:
        openings = [] if opening is None else [(start_from, opening)]
        require_solver_use(problem, solver, [(method, chosen), *openings])
        backend(solver)  # one that is not installed is told, also where a heuristic would do without it
    require_use([(problem, chosen)], ["start"] * started)
    if opening is not None:
        chosen = opened_by(opening, chosen, problem)
    require_use([(problem, chosen)], _asked(limits.threads, seed))
    beginning = None if start is None else solution_of(problem, start)
    progress = watched(chosen.name)
    result = within(chosen, limits, memory_bytes).solve(problem, limits, seed, progress, beginning)
    return accepted(problem, result, accept_error, named=method is not None)


def compare(
    names: Instance | str | Path | Sequence[Instance | str | Path],
    methods: str | Method | Sequence[str | Method] = AUTO,
    *,
    solver: str | Sequence[str] | None = None,
    time_limit: float | None = None,
    gap: float = 1e-4,
    threads: int = 1,
    seed: int = 0,
    memory: float | None = None,
    progress: PairProgress | None = None,
    on_result: Callable[[Result], None] | None = None,
) -> list[Result]:
    """Solve every instance with every method, one after the other.

    What goes wrong with one pair becomes a result with status ``error`` and a message; the rest goes on. So does, in
    what is returned, a bound that another one's checked solution disproves.

    Parameters
    ----------
    names : Instance, str or Path, or a sequence of them
        See :func:`load`.
    methods : str or Method, or a sequence of them
        See :func:`solve`; ``"auto"`` stands for each instance's :func:`default_method`, ``"all-heuristics"`` and
        ``"all-exact"`` for all methods of the kind that cover the instance.
    solver : str or sequence of str, optional
        Of several, each solves every formulation among the methods; the other methods are asked once. One that is not
        installed has results with status ``error``.
    time_limit, gap, threads, seed
        See :func:`solve`. A solver, more than one thread and a seed other than 0 are refused only where none of the
        methods uses them.
    memory : float, optional
        See :func:`solve`; for each pair.
    progress : callable, optional
        Called with instance, method and :class:`~ddlopt.solvers.contracts.TracePoint`, first when a solve
        begins, last with what is ``settled``: the figures of its result.
    on_result : callable, optional
        Called with each result as it comes, so that an interruption loses nothing.

    Returns
    -------
    list of Result
        Instance by instance, methods in the order given; :mod:`ddlopt.analysis` makes tables and pictures of it.

    Raises
    ------
    UnknownNameError, InstanceError, OptionError
        Before anything is solved. The limits are those of :func:`solve`, for each pair.
    """
    from ddlopt.analysis.warm_up import warm_up

    limits, memory_bytes = _limits(time_limit, gap, threads, seed), memory_limit(memory)
    problems = [load(name) for name in ([names] if isinstance(names, Instance | str | Path) else names)]
    wanted: Sequence[str | Method] = [methods] if isinstance(methods, str | Method) else methods
    solvers: list[str | None] = [solver] if solver is None or isinstance(solver, str) else list(solver)
    for each in solvers:
        if each is not None:
            catalogue.require_solver(each)
    pairs = []
    for problem in problems:
        chosen = [
            (asked, made) for asked in written_out(wanted, problem) for made in by_solver(asked, problem, solvers)
        ]
        if solvers[0] is not None and chosen:
            require_solver_use(problem, solvers[0], chosen)
        pairs += [(problem, within(made, limits, memory_bytes)) for _, made in chosen]
    if not pairs:
        raise OptionError("there is nothing to do: no instance is answered by any of the methods")
    require_use(pairs, _asked(threads, seed))
    with suppress(Exception):  # what goes wrong with one method is for its result to say
        warm_up({module for problem, method in pairs for module in kernels_of(method, problem)})
    results = []
    known = {problem.digest: problem for problem in problems}
    for result in run(pairs, limits, seed, progress):
        asked = known.get(result.instance_digest)  # methods of one's own may say anything
        result = result if asked is None else accepted(asked, result, None, named=True)
        results.append(result)
        if on_result is not None:
            on_result(result)
    return refuted(results)


def check(instance: Instance | str | Path, solution: Solution | str | Path, exact: bool = False) -> Evaluation:
    """Recompute a solution's objective from nothing but the instance, and list every constraint that it violates.

    Parameters
    ----------
    instance, solution
        Objects, library name, or files.
    exact : bool
        Calculate in rational numbers.

    Raises
    ------
    InstanceError, SolutionError, UnknownNameError
        If either cannot be read, or the solution says that it answers another instance.
    """
    problem = load(instance)
    return family(problem.family).evaluate(problem, solution_of(problem, solution), exact=exact)


def generate(family_name: str, kind: str, *, seed: int = 0, **options: Any) -> Instance:
    """A seeded instance of a family.

    Parameters
    ----------
    kind : str
        One of :func:`ddlopt.instances.kinds`.
    **options
        Sizes (``servers`` and ``degree`` of a topology instance), any other field of the instance, and what
        :func:`ddlopt.instances.options_of` lists for the kind.

    Raises
    ------
    UnknownNameError
        If there is no such family or kind.
    OptionError
        If an option is missing, out of its range, or unknown to the kind.
    InstanceError
        If the numbers make no instance.
    """
    return instances.generate(family_name, kind, seed, **options)


def convert(path: str | Path, source_format: str, **options: Any) -> Instance:
    """An instance from a file in somebody else's format; see :mod:`ddlopt.instances.readers` for formats and options.

    Raises
    ------
    UnknownNameError
        If there is no such format.
    OptionError
        If the format does not take an option, or needs one that is not given.
    InstanceError
        If the file cannot be read or is something else.
    """
    return instances.convert(path, source_format, **options)


def schema(family_name: str, solution: bool = False) -> dict[str, Any]:
    """JSON schema of the instances or solutions of a family or a problem; ``"cluster-file"``: of a cluster's file."""
    return instances.schema(family_name, solution=solution)


def _asked(threads: int, seed: int) -> list[str]:
    """The options that are not at their defaults."""
    return ["threads"] * (threads != 1) + ["seed"] * (seed != 0)


def _limits(time_limit: float | None, gap: float, threads: int, seed: int) -> Limits:
    require_seed(seed)
    return Limits(time_limit, gap, threads)
