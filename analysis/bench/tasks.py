"""What a sweep is to do: instances × methods × seeds × solvers as single tasks with a key each."""

import dataclasses
import fnmatch
import functools
import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ddlopt import instances
from ddlopt.instances import drawn
from ddlopt.models.catalogue import FAMILY_NAMES
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import OptionError, UnknownNameError
from ddlopt.models.reading import is_file
from ddlopt.models.sizes import require_seed
from ddlopt.solvers import catalogue
from ddlopt.solvers.choice import all_of
from ddlopt.solvers.contracts import OPTIONS, Limits, kernels_of, provenance, solver_of, uses_of
from ddlopt.solvers.names import ALL, AUTO, split
from ddlopt.solvers.options import options_of

_OF_SWEEPS = {"threads": "threads", "seed": "seeds", "start": "starts"}
"""What sweeps call the options of a method; they have no starts."""


@dataclasses.dataclass(frozen=True)
class Task:
    """One solve.

    Parameters
    ----------
    instance : str
        Library name, or a path whose text is in ``text``.
    text : str or None
        JSON of an instance that is not in the library, so that any machine can solve it.
    digest, family : str
    method : str
        Name, and after a colon options of its own: ``link-exchange:effort=2``.
    options : dict
        All options of the method, also those left at their defaults.
    solver : str
        Behind exact methods; empty for the others.
    seed : int
    limits : Limits
    memory_bytes : int or None
        Address space that the process may have.
    versions : dict
        Of what may change an outcome.
    kernels : tuple of str
        Modules whose kernels are compiled before the solve.
    """

    instance: str
    text: str | None
    digest: str
    family: str
    method: str
    options: dict[str, Any]
    solver: str
    seed: int
    limits: Limits
    memory_bytes: int | None
    versions: dict[str, str]
    kernels: tuple[str, ...] = ()

    @functools.cached_property
    def key(self) -> str:
        """SHA-256 of all that decides the outcome; where the instance comes from is not part of it."""
        decisive = dataclasses.asdict(self)
        for name in ("instance", "text", "kernels"):
            del decisive[name]
        canonical = json.dumps(decisive, sort_keys=True, separators=(",", ":"), default=str)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def load(self) -> Instance:
        """The instance.

        Raises
        ------
        UnknownNameError
            If this machine's library has another instance of that name.
        """
        if self.text is not None:
            from ddlopt.models.catalogue import family

            return family(self.family).instance.from_json(self.text, self.instance)
        found = instances.load(self.instance)
        if found.digest != self.digest:
            raise UnknownNameError(
                f"'{self.instance}' is another instance here (digest {found.digest[:12]}…) than where the sweep was "
                f"planned ({self.digest[:12]}…); install the same version of ddlopt"
            )
        return found


def plan(
    names: Iterable[str],
    methods: Sequence[str] | Mapping[str, Sequence[str]],
    seeds: Iterable[int],
    limits: Limits,
    solvers: Sequence[str] = ("highs",),
    memory_bytes: int | None = None,
) -> list[Task]:
    """The tasks of a sweep, instance by instance.

    Parameters
    ----------
    names : iterable of str
        Library names or files.
    methods : sequence of str, or mapping
        ``auto``, ``all-heuristics``, ``all-exact``, names, or names with options (``link-exchange:effort=2``); the
        same for all instances, or by their names. Those of other families and those that refuse an instance are left
        out.
    seeds : iterable of int
    limits : Limits
    solvers : sequence of str
        For exact methods that have a solver behind them.
    memory_bytes : int, optional

    Raises
    ------
    UnknownNameError, InstanceError, OptionError
        If a name, method or option does not exist, or nothing is left to do.
    """
    seeds = tuple(seeds)
    for seed in seeds:
        require_seed(seed)
    versions = _versions()
    tasks: dict[str, Task] = {}
    of_instance = methods if isinstance(methods, Mapping) else dict.fromkeys(names := tuple(names), methods)
    _require_known(itertools.chain(*of_instance.values()))
    for solver in solvers:
        catalogue.require_solver(solver)
    unused = _not_default(limits, seeds, solvers)
    for name in names:
        instance = instances.load(name)
        text = None if instances.find(name) else instance.to_json(indent=None)
        for asked, solver in itertools.product(_methods_for(instance, of_instance[name]), solvers):
            method = catalogue.method(asked, instance.family, solver)
            if method.refuses(instance) is not None:
                continue
            used = solver if solver_of(method, instance) else ""
            uses = uses_of(method, instance)
            unused -= {_OF_SWEEPS[use] for use in OPTIONS if uses is None or use in uses}
            unused -= {"solvers"} if used else set()
            for seed in seeds:
                task = Task(
                    name, text, instance.digest, instance.family, asked, options_of(method), used, seed, limits,
                    memory_bytes, versions, kernels_of(method, instance),
                )  # fmt: skip
                tasks.setdefault(task.key, task)
    if not tasks:
        raise OptionError("there is nothing to do: no instance is answered by any of the methods")
    for option in sorted(unused):
        raise OptionError(f"none of the methods has any use for --{option}; leave it out")
    return list(tasks.values())


def _not_default(limits: Limits, seeds: Sequence[int], solvers: Sequence[str]) -> set[str]:
    """The options of a sweep that ask for something else than what happens by itself."""
    asked = {"threads": limits.threads != 1, "seeds": seeds != (0,), "solvers": tuple(solvers) != ("highs",)}
    return {option for option, given in asked.items() if given}


def _require_known(methods: Iterable[str]) -> None:
    known = {family: set(catalogue.method_names(family)) for family in FAMILY_NAMES}
    for asked in set(methods) - {AUTO, *ALL}:
        if not any(split(asked)[0] in names for names in known.values()):
            raise UnknownNameError(f"there is no method '{asked}'; see `ddlopt list`")


def matching(patterns: Iterable[str]) -> list[str]:
    """Library names that match the patterns (``topology/*-n12-*``), drawn ones, and files; each once, in order.

    Raises
    ------
    UnknownNameError
        If a pattern matches nothing.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        if pattern.startswith(drawn.PREFIX):
            found |= dict.fromkeys(drawn.names(pattern))
            continue
        names = [name for name in instances.names() if fnmatch.fnmatchcase(name, pattern)]
        if not names and is_file(pattern):
            names = [pattern]
        if not names:
            raise UnknownNameError(f"'{pattern}' matches no bundled instance and is no file; see `ddlopt list`")
        found |= dict.fromkeys(names)
    return list(found)


def _methods_for(instance: Instance, methods: Sequence[str]) -> list[str]:
    """The methods of the instance's family that are meant, each once."""
    known = set(catalogue.method_names(instance.family))
    wanted: dict[str, None] = {}
    for asked in methods:
        if asked == AUTO:
            wanted[catalogue.default_method(instance)] = None
        elif asked in ALL:
            wanted |= dict.fromkeys(all_of(asked, instance.family))
        elif split(asked)[0] in known:
            wanted[asked] = None
    return list(wanted)


def _versions() -> dict[str, str]:
    recorded = provenance(0, 1)
    return {name: str(recorded[name]) for name in ("ddlopt", "highspy", "pyomo", "numpy", "python")}
