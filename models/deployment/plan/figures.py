"""What each decision for a group costs its operators and moves between groups, as arrays; the data of bounds."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.layouts import Decision, Layout, Moved, decisions, layouts, moved, seats
from ddlopt.models.deployment.plan.least_times import whole_times
from ddlopt.models.deployment.plan.shares import time_at
from ddlopt.models.deployment.plan.simulator.tasks import all_reduce_s

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PlanFigures:
    """Figures of an instance for all decisions; rows are operators, seconds.

    Parameters
    ----------
    instance : DeploymentInstance
    """

    instance: DeploymentInstance

    @cached_property
    def layouts(self) -> tuple[Layout, ...]:
        """What a group may be laid out like."""
        return layouts(self.instance)

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """What may be decided for a group."""
        return decisions(self.layouts)

    @cached_property
    def split(self) -> tuple[int, ...]:
        """Layouts with several replicas, whose operators may be duplicated."""
        return tuple(place for place, layout in enumerate(self.layouts) if layout.split and layout.replicas > 1)

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """(device groups,) devices of each."""
        return np.array([group.count for group in self.instance.device_groups])

    @cached_property
    def whole_s(self) -> Floats:
        """(operators, device groups) of the whole batch on one device."""
        return whole_times(self.instance)

    @cached_property
    def part_s(self) -> Floats:
        """(operators, layouts, device groups) of a replica's part, the least in the group; 0 where there is none."""
        instance, at = self.instance, self.instance.device_group_of
        found = np.full((len(instance.operators), len(self.layouts), len(instance.device_groups)), np.inf)
        for lay, layout in enumerate(self.layouts):
            for j, part in {(int(at[replica.device]), replica.units) for replica in layout.parts}:
                kind = instance.device_groups[j].type
                for place, operator in enumerate(instance.operators):
                    time = float(time_at(instance.shares, operator.times_s[kind], part))
                    found[place, lay, j] = min(found[place, lay, j], time)
        return np.where(np.isfinite(found), found, 0.0)

    @cached_property
    def least_s(self) -> Floats:
        """(operators, layouts) of the quickest replica."""
        there = np.array([[j in layout.device_groups for j in range(len(self.counts))] for layout in self.layouts])
        least: Floats = np.where(there, self.part_s, np.inf).min(axis=2)
        return least

    @cached_property
    def reduce_s(self) -> Floats:
        """(operators, layouts) of an all-reduce; 0 without a gradient or replicas."""
        found = np.zeros((len(self.instance.operators), len(self.layouts)))
        for lay in self.split:
            chosen = self.layouts[lay].device_groups
            for place, operator in enumerate(self.instance.operators):
                if operator.gradient_bytes:
                    found[place, lay] = all_reduce_s(self.instance, chosen, operator.gradient_bytes, float)
        return found

    @cached_property
    def rate(self) -> Floats:
        """(devices, devices) bandwidth."""
        at = self.instance.device_group_of
        within = np.array([group.bandwidth_bytes_per_s for group in self.instance.device_groups])
        return np.where(at[:, None] == at, within[at][:, None], self.instance.bandwidth_bytes_per_s[np.ix_(at, at)])

    @cached_property
    def seats(self) -> tuple[Layout, ...]:
        """What a single operator may have; those with several replicas have the numbers that they have as layouts."""
        return seats(self.instance, self.layouts)

    @cached_property
    def moved(self) -> tuple[tuple[Moved, ...], ...]:
        """What moves between any two seats."""
        return tuple(tuple(moved(self.instance, self.rate, a, b) for b in self.seats) for a in self.seats)

    def server_s(self, place: int, layout: int) -> tuple[float, float, Floats]:
        """Of an operator's gradient through a server: slowest way there, slowest way back, and seconds of links.

        Links are those between device groups, (device groups, device groups).
        """
        instance, at = self.instance, self.instance.device_group_of
        devices = np.array([replica.device for replica in self.layouts[layout].parts])
        server = devices[place % len(devices)]
        others = devices[devices != server]
        size = instance.operators[place].gradient_bytes
        there = size / self.rate[others, server] + instance.latency_s
        back = size / self.rate[server, others] + instance.latency_s
        busy = np.zeros((len(self.counts), len(self.counts)))
        far = at[others] != at[server]
        np.add.at(busy, (at[others][far], at[server]), there[far])
        np.add.at(busy, (at[server], at[others][far]), back[far])
        return float(there.max()), float(back.max()), busy
