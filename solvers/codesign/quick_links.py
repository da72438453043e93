"""Links for a job without a search: the best of some, as a quick balance tells them apart."""

import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np

from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.models.topology import TopologyDesign, TopologyInstance
from ddlopt.solvers import chain
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology.balance.balance import Balance, Effort, Job, balance
from ddlopt.solvers.topology.balance.exact import polish
from ddlopt.solvers.topology.balance.path_kernels import seed_kernels
from ddlopt.solvers.topology.link_exchange.starts import (
    LinkStart,
    closed_rings,
    design_start,
    finder_starts,
    random_start,
    spanning_groups,
)

STEPS = "codesign/bound-guided"
"""What packages add: *links* to choose among, in place of random ones."""
POLISHED_SERVERS = 24
"""Servers up to which more rings are looked for, and shares and routes end with a linear program."""
_QUICK = Effort(sweeps=12, sharpest=100.0, kicks=0, columns=10, tolerance=2e-3)
_FINE = Effort(sweeps=40, sharpest=400.0, kicks=0, columns=12, tolerance=5e-4)
_SMALL = Effort(sweeps=60, sharpest=1000.0, kicks=6, columns=48, tolerance=1e-4)


def quick_links(
    job: TopologyInstance, seed: int, begin: TopologyDesign | None, clock: Clock, most: int
) -> tuple[TopologyDesign, float]:
    """A design and bytes on its busiest link: the best of ``most`` links made, TopologyFinder's, and those given.

    Raises
    ------
    NoSolutionError
        If none of them serve the job.
    """
    given = None if begin is None else design_start(job, begin, "given")
    makers = [step.make for step in chain.steps(STEPS, "links")] or [_random_starts]
    made = itertools.islice(itertools.chain.from_iterable(make(job, seed) for make in makers), most)
    found: list[Balance] = []
    for start in itertools.chain(made, () if given is None else (given,), finder_starts(job, seed)):
        with suppress(InfeasibleError):
            found.append(balanced(job, start, fine=False))
        if found and clock.expired:
            break
    if not found:
        raise NoSolutionError(f"'{job.name}': no links were found over which everything can be sent")
    best = min(found, key=lambda each: each.congestion_bytes)
    return best.design(), best.congestion_bytes


def balanced(instance: TopologyInstance, start: LinkStart, fine: bool, polished: bool = True) -> Balance:
    """Routes and shares on these links; exact ones for few servers, if it is to be ``fine`` and ``polished``.

    Raises
    ------
    InfeasibleError
        If the links leave something without a path.
    """
    job, small = Job(instance), instance.servers <= POLISHED_SERVERS
    effort = _SMALL if small and fine else _FINE if fine else _QUICK
    found = balance(job, start.heads, job.orders(start.rings, effort.columns), effort)
    return polish(found) if small and fine and polished else found


def _random_starts(job: TopologyInstance, seed: int) -> Iterator[LinkStart]:
    """Rings of all servers closed on every port, where all reduce something together, and random links."""
    seed_kernels(seed)
    rng, spanning = np.random.default_rng(seed), spanning_groups(job)
    for closed in (job.degree, 0):
        start = random_start(job, closed, rng)
        if start is not None:
            rings = closed_rings(start.heads, start.cycles, job.optics == "duplex")
            yield replace(start, rings=dict.fromkeys(spanning, rings) if rings else {})
