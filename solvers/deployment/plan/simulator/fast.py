"""The time of a step for thousands of plans a second; same rules as :mod:`~.simulate`, in Numba."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.plan.check import require_fit
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.solution import Deployment
from ddlopt.solvers.deployment.plan.actions import Action, actions, as_deployment
from ddlopt.solvers.deployment.plan.simulator.build import Choice
from ddlopt.solvers.deployment.plan.simulator.run import steps
from ddlopt.solvers.deployment.plan.simulator.tables import Floats, Ints, tables
from ddlopt.solvers.deployment.plan.simulator.work import Work, workspace

# Tasks besides those of operators: it grows when there are more.
_ROOM = 1024


class Outcome(NamedTuple):
    """One step.

    Parameters
    ----------
    time_s : float
        Infinite where it was given up as too long; the rest then means nothing.
    excess_bytes : float
        The most that any device needs beyond its memory (and rounding); at most 0 where the plan is feasible.
    peak_bytes : (devices,) array
    """

    time_s: float
    excess_bytes: float
    peak_bytes: Floats


class Simulator:
    """Runs plans of one instance, written as rows of numbers of ``actions``, one for each group.

    Not to be called by several threads at once: it keeps its room from plan to plan.

    Parameters
    ----------
    instance : DeploymentInstance
    choices : sequence of Action, optional
        Those that rows count; :func:`~ddlopt.solvers.deployment.plan.actions.actions` if not given.
    threads : int
        That :meth:`run_all` uses; what it returns does not depend on them.

    Attributes
    ----------
    actions : tuple of Action
    """

    def __init__(self, instance: DeploymentInstance, choices: Sequence[Action] | None = None, threads: int = 1) -> None:
        self.instance = instance
        self.actions = actions(instance) if choices is None else tuple(choices)
        self._numbers = {action: number for number, action in enumerate(self.actions)}
        self._tables = tables(instance, self.actions)
        room = _ROOM + 8 * len(instance.operators) * instance.devices
        self._works = [workspace(self._tables, room) for _ in range(threads)]
        self._nothing = np.zeros(len(instance.operators), np.int64)
        self._anywhere = np.full(len(instance.operators), -1)

    @property
    def work(self) -> Work:
        """Of the last :meth:`run`: tasks with their times, for who wants more than the outcome."""
        return self._works[0]

    @property
    def scale_s(self) -> float:
        """Seconds of 2^64 ticks, in which :attr:`work` has times."""
        return self._tables.scale_s

    def run(
        self,
        chosen: npt.ArrayLike,
        duplicated: Ints | None = None,
        devices: Ints | None = None,
        above: float = math.inf,
    ) -> Outcome:
        """One step under a plan.

        Parameters
        ----------
        chosen : (groups,) integers
            Places in ``actions``.
        duplicated : (operators,) integers, optional
            1 for an operator that each replica computes for the whole batch; without effect where it cannot be.
        devices : (operators,) integers, optional
            With ``model_parallel`` the device of each operator, of those in its device groups; -1 for that of
            :func:`~ddlopt.solvers.deployment.plan.actions.spread`.
        above : float
            Give up once the step is seen to take more.
        """
        choice = self._choice(chosen, duplicated, devices)
        time, excess = np.empty(1), np.empty(1)
        self._run_part(0, choice.action[None], choice.duplicated[None], choice.device[None], above, time, excess)
        return Outcome(float(time[0]), float(excess[0]), self._works[0].peak.copy())

    def run_all(
        self,
        chosen: npt.ArrayLike,
        duplicated: Ints | None = None,
        devices: Ints | None = None,
        above: float = math.inf,
    ) -> tuple[Floats, Floats]:
        """Times and excesses, each (plans,), of many plans: the rows of ``chosen`` (plans, groups); see :meth:`run`.

        ``duplicated`` and ``devices`` are of all plans, or have a row for each, (plans, operators).
        """
        rows, own, where = map(np.atleast_2d, self._choice(chosen, duplicated, devices))
        time, excess = np.empty(len(rows)), np.empty(len(rows))
        cuts = [len(rows) * k // len(self._works) for k in range(len(self._works) + 1)]
        with ThreadPoolExecutor(len(self._works)) as pool:
            runs = [
                pool.submit(
                    self._run_part, work, rows[a:b], _of_rows(own, a, b), _of_rows(where, a, b), above,
                    time[a:b], excess[a:b],
                )
                for work, (a, b) in enumerate(pairwise(cuts))
            ]  # fmt: skip
        for run in runs:
            run.result()
        return time, excess

    def _run_part(
        self,
        number: int,
        rows: Ints,
        duplicated: Ints,
        device: Ints,
        above: float,
        time: Floats,
        excess: Floats,
    ) -> None:
        done, count = 0, len(rows)
        while True:
            work, own, where = self._works[number], _of_rows(duplicated, done, count), _of_rows(device, done, count)
            done += steps(self._tables, rows[done:], own, where, work, above, time[done:], excess[done:])
            if done == len(rows):
                return
            self._grow(number)

    def choice(self, deployment: Deployment) -> Choice:
        """What :meth:`run` takes (``action``, ``duplicated``, ``device``) for a deployment.

        Raises
        ------
        SolutionError
            If the deployment does not fit the instance.
        KeyError
            If one of its actions is not among ``actions``.
        """
        require_fit(self.instance, deployment)
        chosen, device = [], self._anywhere.copy()
        for group, plan in enumerate(deployment.groups):
            at = self.instance.devices_of(plan.device_groups)
            kinds = {self.instance.device_groups[j].type for j in plan.device_groups}
            split = "even" if len(kinds) == 1 or plan.mode == "model_parallel" else plan.split
            mode = "all_reduce" if len(at) == 1 else plan.mode
            chosen.append(self._numbers[Action(plan.device_groups, mode, split)])
            if plan.devices is not None:
                device[list(self.instance.members[group])] = plan.devices
        duplicated = self._nothing.copy()
        duplicated[list(deployment.duplicated)] = 1
        return Choice(np.array(chosen, np.int64), duplicated, device)

    def deployment(
        self, chosen: npt.ArrayLike, duplicated: Ints | None = None, devices: Ints | None = None
    ) -> Deployment:
        """The deployment of a plan as :meth:`run` takes it."""
        choice = self._choice(chosen, duplicated, devices)
        plans = [self.actions[number] for number in choice.action]
        return as_deployment(self.instance, plans, np.flatnonzero(choice.duplicated).tolist(), choice.device)

    def _choice(self, chosen: npt.ArrayLike, duplicated: Ints | None, devices: Ints | None) -> Choice:
        return Choice(
            np.ascontiguousarray(chosen, np.int64),
            self._nothing if duplicated is None else np.ascontiguousarray(duplicated, np.int64),
            self._anywhere if devices is None else np.ascontiguousarray(devices, np.int64),
        )

    def _grow(self, number: int) -> None:
        self._works[number] = workspace(self._tables, 2 * len(self._works[number].node))


def _of_rows(rows: Ints, first: int, last: int) -> Ints:
    """Those of some plans; a single row is that of all."""
    return rows if len(rows) == 1 else rows[first:last]
