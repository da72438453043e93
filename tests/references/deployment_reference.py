"""A second simulator of a training step, slow and in fractions, written from the rules and nothing else."""

from fractions import Fraction
from math import lcm

import networkx as nx

UNITS = 4 * lcm(*range(1, 25))


def _device_groups(instance):
    return [j for j, group in enumerate(instance.device_groups) for _ in range(group.count)]


def _parts(instance, deployment):
    """(operator, device) -> (from, to), in fractions of the batch."""
    at = _device_groups(instance)
    found = {}
    for group, plan in enumerate(deployment.groups):
        members = [place for place in instance.order if instance.operators[place].group == group]
        if plan.mode == "model_parallel":
            found |= {
                (place, device): (Fraction(0), Fraction(1)) for place, device in zip(members, plan.devices, strict=True)
            }
            continue
        devices = [device for device, j in enumerate(at) if j in plan.device_groups]
        need = {
            device: sum(
                Fraction(operator.times_s[instance.device_groups[at[device]].type][0])
                for operator in instance.operators
            )
            for device in devices
        }
        weight = {
            device: 1 / need[device] if plan.split == "speed" and min(need.values()) > 0 else Fraction(1)
            for device in devices
        }
        total, reached, before = sum(weight.values()), Fraction(0), Fraction(0)
        for device in devices:
            reached += weight[device]
            border = Fraction(round(UNITS * reached / total), UNITS)
            for place in members:
                found[place, device] = (
                    (Fraction(0), Fraction(1)) if place in deployment.duplicated else (before, border)
                )
            before = border
    return found


def _duration(instance, operator, kind, share):
    points = sorted(zip(map(Fraction, instance.shares), map(Fraction, operator.times_s[kind]), strict=True))
    if len(points) == 1:
        points.insert(0, (Fraction(0), Fraction(0)))
    place = max([0, *(k for k in range(len(points) - 1) if points[k][0] < share)])
    (x, s), (y, t) = points[place], points[place + 1]
    return max(Fraction(0), s + (t - s) * (share - x) / (y - x))


class Slow:
    """``time``, ``peaks`` (list), ``starts`` and ``ends`` by task."""

    def __init__(self, instance, deployment):
        self.instance, self.deployment = instance, deployment
        self.at = _device_groups(instance)
        self.parts = _parts(instance, deployment)
        self.graph = nx.DiGraph()
        self.rank = {place: k for k, place in enumerate(instance.order)}
        self.buffers = []  # [device, bytes, maker, users]
        for place, operator in enumerate(instance.operators):
            self._operator(place, operator)
        for place, tensor in enumerate(instance.tensors):
            self._tensor(place, tensor)
        self._run()
        self._memory()

    def _on(self, place):
        return sorted(device for operator, device in self.parts if operator == place)

    def _add(self, node, key, resource, duration):
        if node not in self.graph or "key" not in self.graph.nodes[node]:
            self.graph.add_node(node, key=key, resource=resource, duration=duration)

    def _link(self, source, target, size):
        a, b = self.at[source], self.at[target]
        rate = (
            self.instance.device_groups[a].bandwidth_bytes_per_s
            if a == b
            else self.instance.bandwidth_bytes_per_s[a][b]
        )
        return ("pair", source, target) if a == b else ("groups", a, b), size / Fraction(float(rate)) + Fraction(
            self.instance.latency_s
        )

    def _operator(self, place, operator):
        devices = self._on(place)
        for device in devices:
            low, high = self.parts[place, device]
            kind = self.instance.device_groups[self.at[device]].type
            duration = _duration(self.instance, operator, kind, high - low)
            self._add(("run", place, device), (self.rank[place], device, 1), ("device", device), duration)
        size = Fraction(operator.gradient_bytes)
        if not size:
            return
        plan = self.deployment.groups[operator.group]
        gradients = {device: [device, size, ("run", place, device), []] for device in devices}
        self.buffers += gradients.values()
        if len(devices) == 1 or place in self.deployment.duplicated:
            return
        if plan.mode == "all_reduce":
            rates = [
                self.instance.device_groups[i].bandwidth_bytes_per_s
                if i == j
                else self.instance.bandwidth_bytes_per_s[i][j]
                for i in plan.device_groups
                for j in plan.device_groups
                if i != j or len(plan.device_groups) == 1
            ]
            cost = self.instance.all_reduce
            lines = [Fraction(a) * size + Fraction(b) for a, b in zip(cost.s_per_byte, cost.fixed_s, strict=True)]
            duration = max(lines) * Fraction(cost.at_bytes_per_s) / Fraction(float(min(rates)))
            node = ("reduce", place)
            self._add(node, (self.rank[place], 1000), ("collective",), duration)
            for device in devices:
                self.graph.add_edge(("run", place, device), node)
                gradients[device][3].append(node)
            return
        server = devices[place % len(devices)]
        others = [device for device in devices if device != server]
        for device in others:
            there, back = ("there", place, device), ("back", place, device)
            self._add(there, (self.rank[place], 1000, 0, device), *self._link(device, server, size))
            self._add(back, (self.rank[place], 1000, 1, device), *self._link(server, device, size))
            self.buffers.append([device, size, back, []])
            self.buffers.append([server, size, there, [("back", place, other) for other in others]])
            gradients[device][3].append(there)
            gradients[server][3].append(back)
            self.graph.add_edge(("run", place, device), there)
            self.graph.add_edge(("run", place, server), back)
        self.graph.add_edges_from((("there", place, a), ("back", place, b)) for a in others for b in others)

    def _tensor(self, place, tensor):
        instance, size = self.instance, Fraction(tensor.size_bytes)
        holders = {device: self.parts[tensor.producer, device] for device in self._on(tensor.producer)}
        whole = all(part == (0, 1) for part in holders.values())
        own = {
            device: [device, (high - low) * size, ("run", tensor.producer, device), []]
            for device, (low, high) in holders.items()
        }
        sent = {}
        for consumer in sorted(tensor.consumers, key=self.rank.get):
            for device in self._on(consumer):
                needed, reader = self.parts[consumer, device], ("run", consumer, device)
                sources = holders
                if whole:
                    order = sorted(
                        holders, key=lambda other: (other != device, self.at[other] != self.at[device], other)
                    )
                    sources = order[:1]
                for source in sources:
                    low, high = max(needed[0], holders[source][0]), min(needed[1], holders[source][1])
                    if low >= high:
                        continue
                    if source == device or not size:
                        self.graph.add_edge(("run", tensor.producer, source), reader)
                        if source == device:
                            own[source][3].append(reader)
                        continue
                    node = ("send", place, source, device, low, high)
                    self._add(
                        node,
                        (self.rank[consumer], device, 0, place, source),
                        *self._link(source, device, (high - low) * size),
                    )
                    self.graph.add_edge(("run", tensor.producer, source), node)
                    self.graph.add_edge(node, reader)
                    own[source][3].append(node)
                    if node not in sent:
                        sent[node] = [device, (high - low) * size, node, []]
                    sent[node][3].append(reader)
        self.buffers += [*own.values(), *sent.values()]
        assert instance is self.instance

    def _run(self):
        """Step by step: who is ready queues up; then the earliest end, of those the first in the queues."""
        graph, queued, self.starts, self.ends, done = self.graph, [], {}, {}, []
        free, now = {}, Fraction(0)
        while len(done) < len(graph):
            finished = set(done)
            fresh = [
                node
                for node in graph
                if node not in self.ends and all(before in finished for before in graph.predecessors(node))
            ]
            for node in sorted(fresh, key=lambda node: graph.nodes[node]["key"]):
                resource = graph.nodes[node]["resource"]
                self.starts[node] = max(now, free.get(resource, Fraction(0)))
                self.ends[node] = free[resource] = self.starts[node] + graph.nodes[node]["duration"]
                queued.append(node)
            node = min((node for node in queued if node not in finished), key=lambda node: self.ends[node])
            now = self.ends[node]
            done.append(node)
        self.time, self.done = now, done

    def _memory(self):
        self.peaks = [Fraction(0)] * len(self.at)
        turn = {node: k for k, node in enumerate(self.done)}
        spans = [
            (device, size, turn[maker], max(turn[node] for node in [maker, *users]))
            for device, size, maker, users in self.buffers
        ]
        for device in range(len(self.at)):
            resident = sum(
                (Fraction(self.instance.operators[place].resident_bytes) for place, at in self.parts if at == device),
                Fraction(0),
            )
            held = [
                sum((size for at, size, first, last in spans if at == device and first <= k <= last), Fraction(0))
                for k in range(len(self.done))
            ]
            self.peaks[device] = resident + max(held, default=Fraction(0))
