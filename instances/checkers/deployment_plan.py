"""Checks a deployment by simulating one training step in rational numbers: python deployment_plan.py INSTANCE SOLUTION.

Replicas of an operator work on consecutive parts of the batch; what they read and do not have is sent to them. A task
that has all that it waits for reserves its device, its link or the one channel of collectives at once; ends of tasks
are taken by time, and at the same time in the order in which the tasks became ready. The objective is the last end.
Devices keep weights, and what is made on them or sent to them until all who need it have ended.
"""

import gzip
import heapq
import json
import sys
from fractions import Fraction as F
from math import lcm

UNITS = 4 * lcm(*range(1, 25))
"""Of the batch, in which borders between parts are counted."""
MEMORY_TOLERANCE = F(1e-9)
"""Relative: peaks may be above the memory by that much."""
TAG_LINES = {
    "s_per_byte": [0.043420241e-6 / 1024, 0.277668025e-6 / 1024],
    "fixed_s": [368.20136e-6, 211.91926e-6],
    "at_bytes_per_s": 2.81e9,
}
"""Seconds of an all-reduce where the instance does not say otherwise."""


def rates_of(matrix):
    """By (source, target): from rows of a matrix, or from {"size": n, "entries": [[i, j, value], …]}."""
    if isinstance(matrix, dict):
        return {(i, j): value for i, j, value in matrix["entries"]}
    return {(i, j): value for i, row in enumerate(matrix) for j, value in enumerate(row)}


class Buffer:
    """Bytes on a device until all its users have ended."""

    def __init__(self, device, size):
        self.device, self.size, self.users = device, size, 0


class Task:
    """Work for a resource: seconds, tasks that wait for it, how many it waits for, buffers that it makes and needs."""

    def __init__(self, resource, duration, device):
        self.resource, self.duration, self.device = resource, duration, device
        self.next, self.waits, self.makes, self.needs = [], 0, [], []

    def wait(self, before, buffer=None):
        """For the end of another task, and for bytes that must stay until this one has ended."""
        self.waits += 1
        before.next.append(self)
        if buffer is not None:
            buffer.users += 1
            self.needs.append(buffer)


class Step:
    """All tasks of a deployment."""

    def __init__(self, instance, deployment):
        self.instance, self.plans = instance, deployment["groups"]
        self.operators, self.tensors = instance["operators"], instance.get("tensors", [])
        self.groups, self.rates = instance["device_groups"], rates_of(instance["bandwidth_bytes_per_s"])
        self.group_of = [j for j, group in enumerate(self.groups) for _ in range(group["count"])]
        self.duplicated = set(deployment.get("duplicated", []))
        self.order = self.in_order()
        self.members = [[] for _ in range(1 + max(operator["group"] for operator in self.operators))]
        for place in self.order:
            self.members[self.operators[place]["group"]].append(place)
        self.tasks, self.parts, self.held, self.sent = [], {}, {}, {}

    def in_order(self):
        """Operators, each after those that it reads from, of several the first."""
        readers = [set() for _ in self.operators]
        for tensor in self.tensors:
            readers[tensor["producer"]].update(tensor["consumers"])
        left = [0] * len(readers)
        for nodes in readers:
            for node in nodes:
                left[node] += 1
        ready, order = [node for node, count in enumerate(left) if not count], []
        while ready:
            node = heapq.heappop(ready)
            order.append(node)
            for reader in readers[node]:
                left[reader] -= 1
                if not left[reader]:
                    heapq.heappush(ready, reader)
        return order

    def devices_of(self, groups):
        """Devices of some groups."""
        return [device for device, group in enumerate(self.group_of) if group in groups]

    def misfits(self):
        """What is broken so that there is no time."""
        if len(self.plans) != len(self.members):
            return [("every_group_has_a_plan", "groups")]
        broken = []
        for group, plan in enumerate(self.plans):
            where, devices = f"groups[{group}]", plan.get("devices")
            unknown = [j for j in plan["device_groups"] if not 0 <= j < len(self.groups)]
            broken += [("device_group_exists", where)] * bool(unknown)
            if unknown or devices is None:
                continue
            if len(devices) != len(self.members[group]):
                broken.append(("every_operator_has_a_device", where))
            for device in devices:
                if not 0 <= device < len(self.group_of):
                    broken.append(("device_exists", where))
                elif self.group_of[device] not in plan["device_groups"]:
                    broken.append(("device_is_in_its_device_groups", where))
        for place in sorted(self.duplicated) if not broken else ():
            if not 0 <= place < len(self.operators):
                broken.append(("operator_exists", "duplicated"))
                continue
            plan = self.plans[self.operators[place]["group"]]
            if plan["mode"] != "all_reduce" or len(self.devices_of(plan["device_groups"])) < 2:
                broken.append(("duplicated_operator_has_replicas_that_all_reduce", f"operator {place}"))
        return broken

    def split(self, plan):
        """(device, first, last) of each replica: parts of the batch in UNITS, even or by speed."""
        devices = self.devices_of(plan["device_groups"])
        weights = [F(1)] * len(devices)
        if plan.get("split", "even") == "speed":
            kinds = {self.groups[self.group_of[device]]["type"] for device in devices}
            work = {kind: sum(F(operator["times_s"][kind][0]) for operator in self.operators) for kind in kinds}
            if all(work.values()):
                weights = [1 / work[self.groups[self.group_of[device]]["type"]] for device in devices]
        cuts = self.cuts(weights)
        if len(set(cuts)) <= len(devices):
            cuts = self.cuts([F(1)] * len(devices))
        return list(zip(devices, cuts, cuts[1:]))

    @staticmethod
    def cuts(weights):
        """Borders of parts in proportion to weights."""
        return [round(UNITS * sum(weights[:k]) / sum(weights)) for k in range(len(weights) + 1)]

    def place(self):
        """Replicas of every operator."""
        for members, plan in zip(self.members, self.plans):
            if plan.get("devices") is not None:
                self.parts |= {place: [(device, 0, UNITS)] for place, device in zip(members, plan["devices"])}
                continue
            split = self.split(plan)
            whole = [(device, 0, UNITS) for device, _, _ in split]
            self.parts |= {place: whole if place in self.duplicated else split for place in members}

    def expand(self):
        """Tasks in order: of each operator what each replica needs and its computation, then its gradients."""
        self.place()
        outputs, inputs = ({place: [] for place in self.order} for _ in range(2))
        for number, tensor in enumerate(self.tensors):
            outputs[tensor["producer"]].append(number)
            for reader in tensor["consumers"]:
                inputs[reader].append(number)
        for place in self.order:
            computations = []
            for device, first, last in self.parts[place]:
                needed = []
                for tensor in inputs[place]:
                    needed += self.brought(tensor, device, first, last)
                task = self.add(("device", device), self.computing_s(place, device, last - first), device)
                for before, buffer in needed:
                    task.wait(before, buffer)
                computations.append(task)
            for tensor in outputs[place]:
                self.held[tensor] = []
                for (device, first, last), task in zip(self.parts[place], computations):
                    buffer = Buffer(device, F(self.tensors[tensor]["size_bytes"]) * (last - first) / UNITS)
                    task.makes.append(buffer)
                    self.held[tensor].append((device, first, last, task, buffer))
            self.synchronise(place, computations)

    def add(self, resource, duration, device):
        """A task."""
        self.tasks.append(Task(resource, duration, device))
        return self.tasks[-1]

    def computing_s(self, place, device, units):
        """On straight lines through the times for shares of the batch; the last goes on, not below 0."""
        times = self.operators[place]["times_s"][self.groups[self.group_of[device]]["type"]]
        shares, share = [F(each) for each in self.instance.get("shares", [1])], F(units, UNITS)
        if len(shares) == 1:
            return F(times[0]) * share
        k = next((k for k in range(1, len(shares)) if share >= shares[k]), len(shares) - 1)
        low, high = F(times[k]), F(times[k - 1])
        return max(F(0), low + (high - low) * (share - shares[k]) / (shares[k - 1] - shares[k]))

    def send(self, size, units, source, target):
        """A transfer of a part of ``size`` bytes, which makes a buffer where it arrives."""
        a, b = self.group_of[source], self.group_of[target]
        if a == b:
            link, rate = ("link", source, target), self.groups[a]["bandwidth_bytes_per_s"]
        else:
            link, rate = ("groups", a, b), self.rates[a, b]
        part = F(size) * units / UNITS
        task = self.add(link, part / F(rate) + F(self.instance.get("latency_s", 0)), source)
        task.makes.append(Buffer(target, part))
        return task

    def sources(self, tensor, device, first, last):
        """Holders of what a reader needs, each with the part that it gives."""
        holders = self.held[tensor]
        if all(end - begin == UNITS for _, begin, end, _, _ in holders):
            near = [holder for holder in holders if holder[0] == device]
            near += [holder for holder in holders if self.group_of[holder[0]] == self.group_of[device]]
            return [((near + holders)[0], first, last)]
        shared = [(holder, max(holder[1], first), min(holder[2], last)) for holder in holders]
        return [(holder, begin, end) for holder, begin, end in shared if begin < end]

    def brought(self, tensor, device, first, last):
        """(task, buffer) that a reader waits for: who made it here, or a transfer from there, which others share."""
        found, size = [], self.tensors[tensor]["size_bytes"]
        for (source, _, _, maker, buffer), begin, end in self.sources(tensor, device, first, last):
            if source == device or not size:
                found.append((maker, buffer if source == device else None))
                continue
            key = (tensor, source, device, begin, end)
            if key not in self.sent:
                self.sent[key] = self.send(size, end - begin, source, device)
                self.sent[key].wait(maker, buffer)
            found.append((self.sent[key], self.sent[key].makes[0]))
        return found

    def synchronise(self, place, computations):
        """Gradients of replicas: one collective, or to one of the replicas and back."""
        size, plan = self.operators[place].get("gradient_bytes", 0), self.plans[self.operators[place]["group"]]
        if not size:
            return
        gradients = [Buffer(task.device, F(size)) for task in computations]
        for task, gradient in zip(computations, gradients):
            task.makes.append(gradient)
        if len(computations) < 2 or place in self.duplicated:
            return
        if plan["mode"] == "all_reduce":
            reduction = self.add(("collective",), self.all_reduce_s(F(size), plan["device_groups"]), None)
            for task, gradient in zip(computations, gradients):
                reduction.wait(task, gradient)
            return
        server = place % len(computations)
        others, arrivals = [k for k in range(len(computations)) if k != server], []
        for k in others:
            arrivals.append(self.send(size, UNITS, computations[k].device, computations[server].device))
            arrivals[-1].wait(computations[k], gradients[k])
        for k in others:
            back = self.send(size, UNITS, computations[server].device, computations[k].device)
            back.wait(computations[server], gradients[server])
            for arrival in arrivals:
                back.wait(arrival, arrival.makes[0])

    def all_reduce_s(self, size, chosen):
        """The largest of several lines in the bytes, scaled by the bandwidth."""
        cost = self.instance.get("all_reduce", TAG_LINES)
        rate = min(
            (self.rates[i, j] for i in chosen for j in chosen if i != j),
            default=self.groups[chosen[0]]["bandwidth_bytes_per_s"],
        )
        line = max(F(a) * size + F(b) for a, b in zip(cost["s_per_byte"], cost["fixed_s"]))
        return line * F(cost["at_bytes_per_s"]) / F(rate)

    def run(self):
        """The end of the last task, and the most bytes that each device has at once."""
        used = [F(0)] * len(self.group_of)
        for place, replicas in self.parts.items():
            for device, _, _ in replicas:
                used[device] += F(self.operators[place].get("resident_bytes", 0))
        peak, scale = list(used), lcm(*(task.duration.denominator for task in self.tasks))
        free, under_way, ready = {}, [], [task for task in self.tasks if not task.waits]
        now = started = 0
        while ready or under_way:
            for task in ready:
                begin = max(now, free.get(task.resource, 0))
                free[task.resource] = begin + int(task.duration * scale)
                heapq.heappush(under_way, (free[task.resource], started, task))
                started += 1
            now, _, task = heapq.heappop(under_way)
            for buffer in task.makes:
                used[buffer.device] += buffer.size
                peak[buffer.device] = max(peak[buffer.device], used[buffer.device])
            for buffer in task.needs:
                buffer.users -= 1
            for buffer in task.makes + task.needs:
                if buffer.users == 0:
                    used[buffer.device] -= buffer.size
                    buffer.users = None  # given up
            ready = []
            for later in task.next:
                later.waits -= 1
                if not later.waits:
                    ready.append(later)
        return F(now, scale), peak


def need(holds, what):
    """Raise ValueError where a file is no answer at all."""
    if not holds:
        raise ValueError(what)


def check(instance, solution):
    """Seconds of a step, None where the answer makes no sense, and (rule, where) of what is broken."""
    for plan in solution["groups"]:
        groups, mode = plan["device_groups"], plan["mode"]
        need(groups and sorted(set(groups)) == groups, "device_groups ascend")
        need(mode in ("all_reduce", "parameter_server", "model_parallel"), "a mode")
        need(plan.get("split", "even") in ("even", "speed"), "a split")
        need((plan.get("devices") is not None) == (mode == "model_parallel"), "devices are for model_parallel")
    duplicated = solution.get("duplicated", [])
    need(sorted(set(duplicated)) == duplicated, "duplicated ascend")
    step = Step(instance, solution)
    broken = step.misfits()
    if broken:
        return None, broken
    step.expand()
    time, peak = step.run()
    for device, most in enumerate(peak):
        if most > F(step.groups[step.group_of[device]]["memory_bytes"]) * (1 + MEMORY_TOLERANCE):
            broken.append(("memory", f"device {device}"))
    return time, broken


def main():
    """Print the objective and every rule that is broken; exit code 0 if none is, 1 if one is, 2 for no answer."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: python {sys.argv[0]} INSTANCE SOLUTION, each a .json or .json.gz file")
    documents = []
    for name in sys.argv[1:]:
        with gzip.open(name, "rt", encoding="utf-8") if name.endswith(".gz") else open(name, encoding="utf-8") as file:
            documents.append(json.load(file))
    instance, solution = documents
    if solution.get("format") == "ddlopt submission":
        solution = solution["solution"]
    try:
        objective, broken = check(instance, solution)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError) as problem:
        print(f"this is no answer to the problem: {type(problem).__name__}: {problem}")
        sys.exit(2)
    print("objective:", "none" if objective is None else f"{objective} ({float(objective):.12g})")
    for rule, where in broken:
        print(f"broken: {rule}: {where}")
    feasible = objective is not None and not broken
    print("feasible" if feasible else "not feasible")
    sys.exit(0 if feasible else 1)


if __name__ == "__main__":
    main()
