"""The independent check of slots and rates, from the problem statement."""

import math
from collections.abc import Iterable
from fractions import Fraction

from ddlopt.models.aggregation.slots.instance import SlotJob, SlotPlan, SlotsInstance
from ddlopt.models.contracts import Evaluation, Number, Violation


def evaluate_slots(instance: SlotsInstance, solution: SlotPlan, exact: bool = False) -> Evaluation:
    """Total or longest time in seconds, and what the plan violates.

    Details are ``total_s`` and ``slowest_s`` (both goals), ``fallbacks`` (jobs on parameter servers), and the fullest
    ``memory_share`` and ``link_share``.
    """
    broken = _malformed(instance, solution)
    if broken:
        return Evaluation(None, tuple(broken))
    check = _Check(instance, solution, exact)
    violations = [*check.jobs(), *check.switches(), *check.links()]
    times = check.times()
    total, slowest = check.sum(times), max(times)
    objective = total if instance.goal == "total" else slowest
    details = {
        "total_s": total,
        "slowest_s": slowest,
        "fallbacks": sum(rate is None for rate in solution.rates_bytes_per_s),
        "memory_share": check.memory_share,
        "link_share": check.link_share,
    }
    return Evaluation(objective, tuple(violations), details)


def _malformed(instance: SlotsInstance, solution: SlotPlan) -> list[Violation]:
    count = len(instance.jobs)
    for name in ("slots", "rates_bytes_per_s"):
        given = len(getattr(solution, name))
        if given != count:
            return [Violation("every job has slots and a rate", name, given, count)]
    found = []
    for place, (job, slots) in enumerate(zip(instance.jobs, solution.slots, strict=True)):
        if len(slots) != len(job.switches):
            found.append(Violation("slots are given at every switch", f"slots[{place}]", len(slots), len(job.switches)))
        for number, each in enumerate(slots):
            if each < 0:
                found.append(Violation("slots are not negative", f"slots[{place}][{number}]", each, 0))
        rate = solution.rates_bytes_per_s[place]
        if rate is None and job.fallback_bytes_per_s is None:
            found.append(Violation("job that falls back has a server", f"rates_bytes_per_s[{place}]", 1, 0))
        if rate is not None and rate <= 0:
            found.append(Violation("rate is positive", f"rates_bytes_per_s[{place}]", rate, 0))
    return found


class _Check:
    def __init__(self, instance: SlotsInstance, solution: SlotPlan, exact: bool) -> None:
        self._instance = instance
        self._solution = solution
        self._number = Fraction if exact else float
        self.memory_share: Number = 0
        self.link_share: Number = 0

    def sum(self, values: Iterable[Number]) -> Number:
        """Exact, or rounded once."""
        if self._number is Fraction:
            return sum((Fraction(value) for value in values), Fraction(0))
        return math.fsum(values)

    def times(self) -> list[Number]:
        """Weighted seconds of each job."""
        number, found = self._number, []
        for job, rate in zip(self._instance.jobs, self._solution.rates_bytes_per_s, strict=True):
            used = job.fallback_bytes_per_s if rate is None else rate
            ends = [number(ready) + number(left) / number(used or 0) for ready, left in job.left_to_send]
            found.append(number(job.weight) * number(job.iterations) * max(number(job.compute_s), *ends))
        return found

    def jobs(self) -> list[Violation]:
        """Rates above what the network card or the slots allow; slots that are not whole."""
        number, found = self._number, []
        for place, job in enumerate(self._instance.jobs):
            rate, slots = self._solution.rates_bytes_per_s[place], self._solution.slots[place]
            if self._instance.whole:
                found += [
                    Violation("slots are whole", f"slots[{place}][{k}]", each, round(each))
                    for k, each in enumerate(slots)
                    if each != round(each)
                ]
            if rate is None:
                continue
            card = number(job.nic_bytes_per_s) * number(job.sent_once)
            if rate > card:
                where = f"job {place} ('{job.name}')"
                found.append(Violation("rate within the network card's", where, rate, card))
            for k, (switch, given) in enumerate(zip(job.switches, slots, strict=True)):
                hold_s = number(job.hold_exact(k, up=True))
                needed = number(rate) * hold_s / number(self._instance.switches[switch].payload_bytes)
                if needed > given:
                    where = f"job {place} ('{job.name}') at switch {switch}"
                    found.append(Violation("slots hold what is in flight", where, needed, given))
        return found

    def switches(self) -> list[Violation]:
        """Switches that give more slots than they have, or complete more sums than they can."""
        found = []
        plans = list(zip(self._instance.jobs, self._solution.slots, self._solution.rates_bytes_per_s, strict=True))
        for place, switch in enumerate(self._instance.switches):
            own = [(job, slots[job.switches.index(place)], rate) for job, slots, rate in plans if place in job.switches]
            where = f"switch {place} ('{switch.name}')"
            given, when = self._most((job, slots) for job, slots, _ in own)
            self.memory_share = max(self.memory_share, given / switch.slots)
            if given > switch.slots:
                found.append(Violation("switch has the slots", where + when, given, switch.slots))
            sums, when = self._most((job, rate) for job, _, rate in own if rate is not None)
            limit = switch.aggregation_bytes_per_s
            if limit is not None and sums > limit:
                found.append(Violation("switch aggregates as fast", where + when, sums, limit))
        return found

    def _most(self, taken: Iterable[tuple[SlotJob, float]]) -> tuple[Number, str]:
        """The largest sum over jobs that are there at once, and since when, in words, where jobs come and go."""
        uses = list(taken)
        sums = [
            (self.sum(use for job, use in uses if job.is_there(time_s)), time_s) for time_s in self._instance.begins_s
        ]
        most, time_s = max(sums)
        stays = any(job.stay for job in self._instance.jobs)
        return most, f" at {time_s:.10g} s" if stays else ""

    def links(self) -> list[Violation]:
        """Links that carry more than their bandwidth."""
        found = []
        rates = list(zip(self._instance.jobs, self._solution.rates_bytes_per_s, strict=True))
        for place, link in enumerate(self._instance.links):
            load, when = self._most(
                (job, rate) for job, rate in rates if rate is not None for each in job.links if each == place
            )
            bandwidth = self._number(link.bandwidth_bytes_per_s)
            self.link_share = max(self.link_share, load / bandwidth)
            if load > bandwidth:
                where = f"link {place} ('{link.name}')" + when
                found.append(Violation("link carries the load", where, load, bandwidth))
        return found
