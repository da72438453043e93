"""A model of plans for CP-SAT, which reads its data from standard input; it needs OR-Tools and nothing of ddlopt.

Choices of groups are literals. Tasks of all choices are optional intervals, of which those that share a device, a link
or the collective channel do not overlap: computations by operator and device, transfers by tensor, devices and part of
the batch, gradients that are reduced or that go to a server and back. Their order is free. Times are whole numbers,
rounded down, so that the bound holds for every plan in every order of work.
"""

import json
import math
import sys
import threading
import time
from collections import defaultdict

from ortools.sat.python import cp_model


class Plans:
    """The model of one instance."""

    def __init__(self, data):
        self.data, self.model = data, cp_model.CpModel()
        self.unit_s, self.most = data["unit_s"], data["most"]
        self.queues, self.loads, self.ends = defaultdict(list), defaultdict(list), []
        self.makespan = self.model.new_int_var(0, self.most, "")
        self.chosen = [[self.model.new_bool_var("") for _ in own] for own in data["choices"]]
        for own in self.chosen:
            self.model.add_exactly_one(own)
        self.start, self.end = {}, {}
        self.lies = [self.literals(place) for place in range(len(data["group"]))]
        for place in range(len(data["group"])):
            self.compute(place)
        for tensor in range(len(data["tensors"])):
            self.transfer(tensor)
        for place, size in enumerate(data["gradient_bytes"]):
            if size:
                self.synchronise(place, size)
        for device, memory in enumerate(data["memory_bytes"]):
            terms = [
                math.floor(data["resident_bytes"][place] / memory * 1e6) * literal
                for place, own in enumerate(self.lies)
                for seat, literal in own.items()
                if any(replica[0] == device for replica in data["seats"][seat])
            ]
            self.model.add(sum(terms) <= 10**6)
        for intervals in self.queues.values():
            self.model.add_no_overlap(intervals)
        for load in self.loads.values():
            # It follows, and a linear relaxation does not see it otherwise.
            self.model.add(self.makespan >= sum(load))
        for end, literal in self.ends:
            self.model.add(self.makespan >= end).only_enforce_if(literal)
        self.model.minimize(self.makespan)

    def units(self, seconds):
        return math.floor(seconds / self.unit_s)

    def either(self, literals):
        """One that is true if one of these is, of which at most one is."""
        if len(literals) == 1:
            return literals[0]
        found = self.model.new_bool_var("")
        self.model.add(sum(literals) == found)
        return found

    def any_of(self, literals):
        """One that is true if any of these is."""
        if len(literals) == 1:
            return literals[0]
        found = self.model.new_bool_var("")
        self.model.add_max_equality(found, literals)
        return found

    def literals(self, place):
        """Of an operator, by seat."""
        group, position = self.data["group"][place], self.data["position"][place]
        found = defaultdict(list)
        for literal, choice in zip(self.chosen[group], self.data["choices"][group], strict=True):
            found[choice["seats"][position]].append(literal)
        return {seat: self.either(own) for seat, own in found.items()}

    def task(self, queue, length, literal):
        """An optional interval on a resource; its start and its end."""
        start, end = (self.model.new_int_var(0, self.most, "") for _ in range(2))
        self.queues[queue].append(self.model.new_optional_interval_var(start, length, end, literal, ""))
        self.loads[queue].append(length * literal if isinstance(length, int) else length)
        self.ends.append((end, literal))
        return start, end

    def compute(self, place):
        by_device = defaultdict(list)
        for seat, literal in self.lies[place].items():
            for k, replica in enumerate(self.data["seats"][seat]):
                by_device[replica[0]].append((self.units(self.data["time_s"][place][seat][k]), literal))
        for device, own in by_device.items():
            literal = self.either([each for _, each in own])
            length = self.model.new_int_var_from_domain(
                cp_model.Domain.from_values([0, *(units for units, _ in own)]), ""
            )
            self.model.add(length == sum(units * each for units, each in own))
            self.start[place, device], self.end[place, device] = self.task(("device", device), length, literal)

    def link(self, source, target):
        return ("link", *self.data["link"][source][target])

    def sent(self, size, share, source, target):
        return self.units(size * share / self.data["rate"][source][target] + self.data["latency_s"])

    def transfer(self, tensor):
        """What readers wait for: the computation on their device, or transfers to it."""
        producer, readers, size = self.data["tensors"][tensor]
        needed, waiting = defaultdict(list), []
        for reader in readers:
            for a, one in self.lies[producer].items():
                for b, other in self.lies[reader].items():
                    entries = self.data["taken"][f"{a} {b}"]
                    both = None
                    for source, target, first, last in entries:
                        if both is None:
                            both = self.model.new_bool_var("")
                            self.model.add_bool_or([both, one.negated(), other.negated()])
                            self.model.add_implication(both, one)
                            self.model.add_implication(both, other)
                        if source == target or not size:
                            self.model.add(self.start[reader, target] >= self.end[producer, source]).only_enforce_if(
                                both
                            )
                            continue
                        needed[source, target, first, last].append(both)
                        waiting.append(((source, target, first, last), reader, both))
        known = {}
        for (source, target, first, last), literals in needed.items():
            literal = self.any_of(literals)
            length = self.sent(size, (last - first) / self.data["batch_units"], source, target)
            start, end = self.task(self.link(source, target), length, literal)
            self.model.add(start >= self.end[producer, source]).only_enforce_if(literal)
            known[source, target, first, last] = end
        for key, reader, both in waiting:
            self.model.add(self.start[reader, key[1]] >= known[key]).only_enforce_if(both)

    def synchronise(self, place, size):
        group, position = self.data["group"][place], self.data["position"][place]
        ways = defaultdict(list)
        for literal, choice in zip(self.chosen[group], self.data["choices"][group], strict=True):
            if choice["syncs"][position] != "none":
                ways[choice["syncs"][position], choice["seats"][position], choice["reduce_s"][position]].append(literal)
        for (way, seat, reduce_s), literals in ways.items():
            literal = self.either(literals)
            devices = [replica[0] for replica in self.data["seats"][seat]]
            if way == "reduce":
                start, _ = self.task(("channel",), self.units(reduce_s), literal)
                for device in devices:
                    self.model.add(start >= self.end[place, device]).only_enforce_if(literal)
                continue
            server = devices[place % len(devices)]
            others = [device for device in devices if device != server]
            arrived = [self.end[place, server]]
            for device in others:
                start, end = self.task(self.link(device, server), self.sent(size, 1, device, server), literal)
                self.model.add(start >= self.end[place, device]).only_enforce_if(literal)
                arrived.append(end)
            for device in others:
                start, _ = self.task(self.link(server, device), self.sent(size, 1, server, device), literal)
                for each in arrived:
                    self.model.add(start >= each).only_enforce_if(literal)


def stopped(solver, until_s, ended):
    """Stop the solver when the process has had its seconds of processor time, however busy the machine is."""
    while not ended.wait(0.1):
        if time.process_time() > until_s:
            solver.stop_search()


def main():
    """Solve what comes on standard input within its limit of processor seconds; answer on standard output."""
    data = json.load(sys.stdin)
    began = time.process_time()
    plans, solver, ended = Plans(data), cp_model.CpSolver(), threading.Event()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = data["seed"]
    watch = threading.Thread(target=stopped, args=(solver, began + data["time_limit_s"], ended), daemon=True)
    watch.start()
    status = solver.solve(plans.model)
    ended.set()
    watch.join()
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    answer = {
        "bound_s": max(0.0, solver.best_objective_bound) * data["unit_s"],
        "time_s": solver.objective_value * data["unit_s"] if found else None,
        "plan": [next(c for c, each in enumerate(own) if solver.value(each)) for own in plans.chosen]
        if found
        else None,
        "processor_s": time.process_time() - began,
    }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
