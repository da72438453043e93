"""The state of the decomposition: candidates with what is known of them, and what the master said."""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ddlopt.frontier.codesign.bounds import priced_bound
from ddlopt.frontier.codesign.joint.candidate import Candidate, assumed_loads, sent_by, served_by, slowest_s, untouched
from ddlopt.frontier.codesign.joint.class_bound import bound_by_classes, excludable
from ddlopt.frontier.codesign.joint.descent import Step, descend
from ddlopt.frontier.codesign.joint.effort import EFFORT
from ddlopt.frontier.codesign.joint.estimate import Estimate
from ddlopt.frontier.codesign.joint.master import Choices, Master, Proposal
from ddlopt.frontier.codesign.joint.symmetric_plans import symmetric_plan
from ddlopt.frontier.codesign.joint.topology import SEARCHED_SERVERS, Answer, deepened, levels_left, provable
from ddlopt.models.codesign.formulations.rows.coupling import plan_of
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.models.topology import TopologyDesign
from ddlopt.solvers.codesign.data_parallel import data_parallel
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock


@dataclass
class Search:
    """One run of :class:`~ddlopt.frontier.codesign.joint.joint.Joint`."""

    instance: CodesignInstance
    master: Master
    clock: Clock
    seed: int
    topology_s: float
    most_choices: int
    candidates: dict[tuple[float, ...], Candidate] = field(default_factory=dict)
    proposals: list[Proposal] = field(default_factory=list)
    spent_s: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    counts: Counter[str] = field(default_factory=Counter)
    proven: dict[Choices, float] = field(default_factory=dict)
    best: Candidate | None = None
    exhausted: bool = False
    finer: float = EFFORT.finer
    nodes: int = EFFORT.nodes

    def run(self, start: CodesignPlan | None) -> None:
        """Propose and answer in turn until the gap is closed, nothing is left to try, or the time is up.

        Raises
        ------
        InfeasibleError
            If no choice of strategies can be sent or fits: the bound over all left is more than any plan takes.
        """
        self.floor_s = priced_bound(self.instance).value_s
        if start is not None:
            self._offer_plan(start)
        self._open()
        while not self.done:
            explored = self._explore()
            if self.done or not (self._deepen() or explored):
                break
        if self.best is None and self.bound_s > slowest_s(self.instance):
            raise InfeasibleError(f"'{self.instance.name}': no links serve any choice of strategies that fits")

    def _open(self) -> None:
        """Begin with the usual strategies, those that prices like, and what an estimate makes of either."""
        self._work_on(self._candidate(self._first_choices())[0])
        self._bound_classes(early=True)
        self._solve_without_cuts()
        self._look_for_symmetric()
        priced = priced_bound(self.instance)
        likely = [self._first_choices(), self._usual, *([priced.choices] if math.isfinite(priced.choices_s) else [])]
        for place, choices in enumerate(dict.fromkeys(likely)):
            for each in (choices, self._improved(choices, self.seed + place)):
                candidate, new = self._candidate(each)
                if new and not self.done:
                    self._work_on(candidate)
        self._descend_from_best()
        self._fit_ports()

    def _look_for_symmetric(self) -> None:
        """Strategies together with links that look the same from every server, where jobs do."""
        if self.best is None or self.done:
            return
        began = time.perf_counter()
        known = [each.choices for each in self.candidates.values() if each.bound_s <= self.best_s]
        clock = Clock(Limits(self._seconds(1 / 3), self.clock.gap), None)
        found = symmetric_plan(
            self.instance, known, self.seed, clock, self.bound_s * (1 + self.clock.gap / 2), EFFORT.symmetric_trials
        )
        self.spent_s["topology"] += time.perf_counter() - began
        if found is None:
            return
        choices, design, busiest = found
        candidate, _ = self._candidate(choices)
        if busiest < candidate.answer.busiest_bytes:
            self._update(candidate, replace(candidate.answer, busiest_bytes=busiest, found=design))

    def _fit_ports(self) -> None:
        """Choices whose bytes suit whole ports, before there are any cuts, each of which makes that program slower."""
        if self.best is None or self.done:
            return
        if provable(self.best.job):  # quick there, and its bound takes nothing for granted either
            limits = Limits(self._seconds(1 / 6), self.clock.gap / EFFORT.accurate)
            self._ask({}, limits, self.best_s, 2.0, EFFORT.solved_nodes)
        self._bound_classes()
        limits = Limits(self._seconds(1 / 4), max(self._fine_gap, EFFORT.opening_gap))
        proposal = self._ask({}, limits, self.best_s, EFFORT.opening_detour, EFFORT.opening_nodes)
        if proposal.choices is None or self.done:
            return
        candidate, new = self._candidate(proposal.choices)
        while new and not self.done and candidate.next_kind == "construct":
            self._work_on(candidate)
        if new and not self.done:
            self._improve_nearby(candidate, fitted=False)

    def _bound_classes(self, early: bool = False) -> None:
        """A bound over all load classes, where they are few; early only where other bounds take longer."""
        job = None if self.best is None else self.best.job
        if not self.done and excludable(job) and not (early and provable(job)):
            clock = Clock(Limits(self._seconds(1 / 2), self.clock.gap), None)
            known_s = self.bound_s
            self.floor_s = max(known_s, bound_by_classes(self.instance, self.target_s, self.seed, clock, known_s))
            self.clock.interrupted |= clock.interrupted

    def _solve_without_cuts(self) -> None:
        """The bound for all strategies, in whole numbers, before there are cuts that slow that program down."""
        if self.best is None or self.done:
            return
        choices = self._solved({})
        if choices is None or self.done:
            return
        candidate, new = self._candidate(choices)
        if new:
            self._work_on(candidate)
        while choices is not None and choices not in self.proven and not self.done and len(self.proven) < EFFORT.proven:
            each = untouched(self.instance, choices)
            if math.isinf(load := each.answer.bound_bytes) or load <= each.least_bytes * (1 + IMPROVEMENT_TOL):
                return
            self.proven[choices] = load
            choices = self._solved(self.proven)

    def _solved(self, loads: Mapping[Choices, float]) -> Choices | None:
        """The best choices if these have such loads, by a program that is solved to optimality."""
        limits = Limits(self._seconds(1 / 6), self.clock.gap / EFFORT.accurate)
        return self._ask(dict(loads), limits, None, 2.0, EFFORT.solved_nodes).choices

    @property
    def done(self) -> bool:
        """Whether the gap asked for is reached, or the time is up."""
        if self.best is None:
            return self.clock.expired or self.bound_s > slowest_s(self.instance)
        return self.clock.expired or self.bound_s >= self.best_s * (1 - self.clock.gap)

    @property
    def target_s(self) -> float:
        """Choices that cannot be faster than this are of no interest."""
        return self.best_s * (1 - self.clock.gap / 2)

    @property
    def bound_s(self) -> float:
        """On the iteration time of every plan."""
        known = {each.choices: each.answer.bound_bytes for each in self.candidates.values()}
        known |= {each: max(load, known.get(each, 0.0)) for each, load in self.proven.items()}
        rate = self.instance.link_bandwidth_bytes_per_s
        return max([self.floor_s, *(proposal.certified_s(known, rate) for proposal in self.proposals)])

    def _candidate(self, choices: Choices) -> tuple[Candidate, bool]:
        """The candidate of these choices, or one that sends the same; and whether it is new."""
        key, _, _ = sent_by(self.instance, choices)
        if new := key not in self.candidates:
            self.candidates[key] = untouched(self.instance, choices)
        return self.candidates[key], new

    def _offer_plan(self, plan: CodesignPlan) -> None:
        choices = plan.choices(self.instance)
        if not tables_of(self.instance).fits(choices):
            return
        candidate, _ = self._candidate(choices)
        served = served_by(self.instance, plan)
        if served is not None:
            design, load = served
            self._update(candidate, replace(candidate.answer, busiest_bytes=load, found=design, method="start"))
            return
        # The plan of a relative, with other links: its strategies may be good here, too.
        self._work_on(candidate)
        while not self.done and candidate.next_kind == "construct":
            self._work_on(candidate)

    def _explore(self) -> bool:
        """Ask the master for promising choices and find links for them; False if it has nothing to add."""
        if self.exhausted or self.counts["choices"] >= self.most_choices:
            self.exhausted = True
            return False
        place = self.counts["masters"] % len(EFFORT.detours)
        detour = EFFORT.detours[place] if self.best is not None else None
        proposal = self._proposal(detour)
        self._report()
        if proposal.bound_s >= self.target_s * (1 - IMPROVEMENT_TOL):
            self.exhausted = True
            return True
        if self.clock.expired:
            return False
        candidate, new = self._candidate(proposal.choices or self._first_choices())
        if new:
            self.counts["choices"] += 1
            self._work_on(candidate)
            self._improve_nearby(candidate, fitted=detour is None)
        elif detour is None:
            # Either the program must be solved more accurately, or the cut is too blunt to see the difference.
            self.exhausted = self._fine_gap <= self.clock.gap / EFFORT.accurate
            self.finer *= EFFORT.finer
            self.nodes *= EFFORT.finer_nodes
        return not self.exhausted

    def _improve_nearby(self, candidate: Candidate, fitted: bool) -> None:
        """Other strategies like those of a candidate: on its links, and ``fitted`` ones that suit columns of links."""
        if candidate.time_s <= self.best_s * EFFORT.near and self.instance.servers <= EFFORT.descent_servers:
            self._descend(Step(candidate.choices, candidate.answer.found, candidate.answer.busiest_bytes))
        if self.done or not fitted:
            return
        other, new = self._candidate(self._improved(candidate.choices, self.seed + self.counts["masters"]))
        if new and not self.done:
            self.counts["choices"] += 1
            self._work_on(other)

    def _improved(self, choices: Choices, seed: int) -> Choices:
        """What a local search under the estimate makes of choices."""
        began = time.perf_counter()
        improved = self._estimate.improved(choices, self.clock, seed, EFFORT.looked_at)
        self.spent_s["estimate"] += time.perf_counter() - began
        return improved

    @cached_property
    def _estimate(self) -> Estimate:
        return Estimate(self.instance)

    def _proposal(self, detour: float | None) -> Proposal:
        """What the master says, with whole ports if there is a number of hops for what finds no link."""
        self.counts["masters"] += 1
        if detour is None:
            return self._ask(self._assumed(), Limits(self._seconds(1 / 3), self._fine_gap), None, 2.0, self.nodes)
        limits = Limits(self._seconds(1 / 6), max(self._fine_gap, EFFORT.whole_gap))
        return self._ask(self._assumed(), limits, self.best_s, detour, EFFORT.whole_nodes)

    def _ask(
        self, assumed: Mapping[Choices, float], limits: Limits, most_s: float | None, detour: float, nodes: int
    ) -> Proposal:
        """What :meth:`.Master.propose` answers, noted."""
        began = time.perf_counter()
        with self.clock.lending_ctrl_c():
            start = self._first_choices()
            proposal = self.master.propose(assumed, limits, self.seed, start, most_s, detour, nodes)
        self.clock.interrupted |= proposal.interrupted
        self.spent_s["master"] += time.perf_counter() - began
        self.proposals.append(proposal)
        return proposal

    @property
    def _fine_gap(self) -> float:
        """Relative gap of programs on strategies: no finer than what is left to close makes worth while."""
        open_gap = (self.best_s - self.bound_s) / self.best_s if 0 < self.best_s < math.inf else 0.0
        return max(self.clock.gap / EFFORT.accurate, open_gap / self.finer)

    def _first_choices(self) -> Choices:
        """Strategies to begin with."""
        return self._usual if self.best is None else self.best.choices

    @cached_property
    def _usual(self) -> Choices:
        return data_parallel(self.instance, self.clock)

    def _assumed(self) -> Mapping[Choices, float]:
        """What is taken for granted, see :func:`.assumed_loads`."""
        target = self.target_s if self.best is not None else EFFORT.unserved * slowest_s(self.instance)
        return assumed_loads(self.candidates.values(), target)

    def _deepen(self) -> bool:
        """Spend the next level of effort on candidates; False if there is none for which that is worth while now."""
        open_ones = [each for each in self.candidates.values() if self._is_open(each)]
        near = [each for each in open_ones if each.time_s <= self.best_s * EFFORT.near]
        cheap = [each for each in near if each.next_kind == "construct"]
        searched = [each for each in near if each.next_kind == "search"]
        if cheap or searched:
            picked = sorted(cheap or searched, key=lambda each: (each.answer.level, each.time_s))
        else:
            # What holds the bound down is proven first.
            picked = sorted((c for c in open_ones if c in near or provable(c.job)), key=lambda c: (c.bound_s, c.time_s))
        patient = not self.exhausted and self.counts["choices"] < EFFORT.per_search * (self.counts["searches"] + 1)
        if not picked or (patient and not cheap):
            return False
        self.counts["searches"] += not cheap
        best_s = self.best_s
        self._work_on(picked[0])
        if self.best_s < best_s:
            self._descend_from_best()
        return True

    def _is_open(self, candidate: Candidate) -> bool:
        more = levels_left(candidate.job, candidate.answer) > 0 and not candidate.answer.proven
        return more and candidate.bound_s < self.target_s

    def _work_on(self, candidate: Candidate) -> None:
        """The next level of effort for it; a start of a relative may have had all that there is."""
        answer, began = candidate.answer, time.perf_counter()
        if candidate.job is not None and levels_left(candidate.job, answer) > 0:
            limits = Limits(self._seconds(1.0, self.topology_s), self.clock.gap / EFFORT.accurate)
            answer = deepened(candidate.job, answer, limits, self.seed, self._links(), self.clock)
            self.counts["designs"] += 1
        elif candidate.job is not None:
            return
        self.spent_s["topology"] += time.perf_counter() - began
        self._update(candidate, answer)

    def _links(self) -> TopologyDesign | None:
        """Those of the incumbent, where a search can begin from them."""
        return None if self.best is None or self.instance.servers > SEARCHED_SERVERS else self.best.links

    def _update(self, candidate: Candidate, answer: Answer) -> bool:
        """Note an answer; whether it is the new incumbent."""
        before = self.best_s  # the candidate may be the incumbent itself
        candidate.answer = answer
        better = candidate.time_s < before
        if better:
            # What was assumed for the sake of the incumbent before says little now: the master is asked again.
            self.best, self.exhausted = candidate, False
        self._report()
        return better

    def _descend(self, begin: Step) -> bool:
        """Better strategies on the links of a plan; whether one of them is the new incumbent."""
        began, improved = time.perf_counter(), False
        limits = Limits(self._seconds(1 / 6), max(self._fine_gap, EFFORT.routes_gap))
        fine = self.instance.servers <= SEARCHED_SERVERS
        for step in descend(self.instance, begin, self.clock, self.seed, limits, fine, EFFORT.routes_nodes):
            self.counts["rounds"] += 1
            candidate, _ = self._candidate(step.choices)
            if step.busiest_bytes < candidate.answer.busiest_bytes:
                found = replace(candidate.answer, busiest_bytes=step.busiest_bytes, found=step.found, method="descent")
                improved |= self._update(candidate, found)
        self.spent_s["routes"] += time.perf_counter() - began
        return improved

    def _descend_from_best(self) -> None:
        if self.best is not None and not self.done and self.instance.servers <= EFFORT.descent_servers:
            self._descend(Step(self.best.choices, self.best.answer.found, self.best.answer.busiest_bytes))

    def _seconds(self, share: float, most_s: float = math.inf) -> float | None:
        """Seconds for the next step; None for no limit."""
        seconds = min(self.clock.left_s * share, most_s)
        return None if math.isinf(seconds) else max(seconds, 1e-3)

    def _report(self) -> None:
        self.clock.report(*((None, self.bound_s) if self.best is None else (self.best_s, self.bound_s, self.plan)))

    @property
    def best_s(self) -> float:
        """Iteration time of the best plan; infinite without one."""
        return math.inf if self.best is None else self.best.time_s

    def plan(self) -> CodesignPlan:
        """The best plan.

        Raises
        ------
        NoSolutionError
            If none was found.
        """
        if self.best is None:
            raise NoSolutionError(f"'{self.instance.name}': no plan was found in {self.counts['choices']} choices")
        return plan_of(self.instance, self.best.choices, self.best.answer.design)

    def figures(self) -> dict[str, float]:
        """What the search did, and which plane the remaining gap is of."""
        assert self.best is not None
        return {
            **{each: self.counts[each] for each in ("masters", "rounds", "choices", "designs")},
            **{f"{plane}_s": self.spent_s[plane] for plane in ("master", "topology", "routes", "estimate")},
            **self.best.gaps(self.bound_s),
        }
