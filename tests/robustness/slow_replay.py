"""A second reading of the certificate's rules, in plain Python, from the page that states them; as slow as it likes.

It shares nothing with :mod:`ddlopt.certificates.topology`: neighbour sets are tuples of servers instead of
numbers, distances come from Bellman's equations, the best short ways from sorting, rings from all permutations,
colourings from trying all, integers are Python's. Circles are found by walking along "needs", not by numbers of parts.
"""

import itertools
from fractions import Fraction

FAR = 2**28
CLOSED, BRANCH, END, ELSEWHERE, IMAGE, UNCOLOURABLE = -1, -2, -3, -4, -5, -6


class RefusedError(Exception):
    """Why the certificate proves nothing."""


def need(fact, why):
    if not fact:
        raise RefusedError(why)


def proves(instance, certificate):
    """The bound in bytes, as a Fraction, if the certificate proves it; raises RefusedError otherwise."""
    return _Replay(instance, certificate).bound()


class _Replay:
    def __init__(self, instance, certificate):
        self.instance, c = instance, certificate
        self.n, self.d = instance.servers, instance.degree
        self.duplex, self.forwards = instance.optics == "duplex", instance.host_forwarding
        self.filled = not self.duplex and instance.parallel_links and self.forwards
        need(c.instance_digest == instance.digest, "another instance")
        self.z, exponent = c.bound_units, c.unit_exponent
        need(type(self.z) is int and type(exponent) is int and -1100 < exponent < 1100, "figures")
        need(0 < self.z <= 2**30, "bound")
        self.unit = Fraction(2) ** exponent
        for name, kind in (
            ("words", "<i4"), ("part_words", "<u4"), ("lengths", "<u2"), ("prices", "<i8"), ("images", "<i4")
        ):  # fmt: skip
            need(getattr(c, name).dtype.str == kind, f"type of {name}")
        need(c.words.ndim == c.part_words.ndim == 1, "one row")
        words, counts = c.words.tolist(), c.part_words.tolist()
        need(counts and min(counts) > 0 and sum(counts) == len(words), "parts")
        ends = list(itertools.accumulate(counts))
        self.parts = [words[end - count : end] for count, end in zip(counts, ends, strict=True)]
        columns = (self.n**2 if self.duplex else self.n) + 1
        need(c.lengths.shape == (len(c.prices), self.n**2) and c.prices.shape[1:] == (columns,), "weights")
        self.lengths, self.prices = c.lengths.tolist(), c.prices.tolist()
        need(c.images.shape[1:] == (self.n + 1,), "images")
        self.images = c.images.tolist()
        self._read_instance()

    def _read_instance(self):
        n, instance = self.n, self.instance
        exact = {(i, j): Fraction(float(instance.traffic_bytes[i, j])) for i in range(n) for j in range(n)}
        self.groups = []
        self.wanted = set()
        for group in instance.allreduce_groups:
            k = len(group.members)
            hop = Fraction(2 * (k - 1), k) * Fraction(group.gradient_bytes)
            if k == 2:
                for pair in itertools.permutations(group.members):
                    exact[pair] += hop
            else:
                self.groups.append((group.members, int(hop / self.unit)))
                if self.forwards:
                    self.wanted |= set(itertools.permutations(group.members, 2))
        self.demand = {pair: int(size / self.unit) for pair, size in exact.items()}
        self.wanted |= {pair for pair, size in exact.items() if size}
        need(
            sum(self.demand.values()) + sum(len(members) * hop for members, hop in self.groups) <= 2**30,
            "more units than allowed",
        )
        self.choices = []
        for s in range(n):
            others = [v for v in range(n) if v != s]
            sizes = [self.d] if self.filled else range(self.d, -1, -1)
            choose = itertools.combinations_with_replacement if instance.parallel_links else itertools.combinations
            self.choices.append([ends for size in sizes for ends in choose(others, size)])

    def bound(self):
        self.needs = {part: set() for part in range(len(self.parts))}
        self.begun, self.used, self.shown = {}, {len(self.parts) - 1}, {}
        root = len(self.parts) - 1
        self.begun[root] = {}
        left = [set(choices) for choices in self.choices]
        rest = self._case(root, self.parts[root], {}, left, not self._propagate(left))
        need(not rest, "words after the root")
        need(len(self.used) == len(self.parts) and len(self.shown) == len(self.images), "something unused")
        for image, decided in self.shown.items():
            self._image(self.images[image], decided)
        self._no_circles()
        return self.z * self.unit

    def _no_circles(self):
        done, under_way = set(), set()
        for first in self.needs:
            stack = [(first, iter(self.needs[first]))]
            if first in done:
                continue
            under_way.add(first)
            while stack:
                part, needed = stack[-1]
                for other in needed:
                    need(other not in under_way, "a circle")
                    if other not in done:
                        under_way.add(other)
                        stack.append((other, iter(self.needs[other])))
                        break
                else:
                    under_way.discard(part)
                    done.add(part)
                    stack.pop()

    def _case(self, part, words, decided, left, closed):
        """Read one case; the words that follow it."""
        while True:
            need(words, "cut off")
            word, words = words[0], words[1:]
            if word <= -10:
                need(-10 - word < len(self.lengths), "no such weight")
                if not closed:
                    closed = self._apply(-10 - word, left) or not self._propagate(left)
            elif word == CLOSED:
                need(closed, "not refuted")
                return words
            elif word == UNCOLOURABLE:
                if not closed:
                    need(self.duplex and all(len(sets) == 1 for sets in left), "not one duplex design")
                    need(not self._colourable([next(iter(sets)) for sets in left]), "colourable")
                return words
            elif word in (BRANCH, ELSEWHERE, IMAGE):
                need(words, "cut off")
                operand, words = words[0], words[1:]
                if word == BRANCH:
                    return self._branch(part, words, operand, decided, left, closed)
                if word == IMAGE:
                    need(0 <= operand < len(self.images) and operand not in self.shown, "no such image")
                    self.shown[operand] = dict(decided)
                    self.needs[part].add(self.images[operand][0])
                    return words
                need(0 <= operand < len(self.parts) and operand not in self.used, "no such part")
                self.used.add(operand)
                self.needs[part].add(operand)
                self.begun[operand] = dict(decided)
                need(not self._case(operand, self.parts[operand], decided, left, closed), "words after a part")
                return words
            else:
                raise RefusedError("no such word")

    def _branch(self, part, words, server, decided, left, closed):
        need(0 <= server < self.n and server not in decided, "no such server")
        seen = set()
        while True:
            need(words, "cut off")
            word, words = words[0], words[1:]
            if word == END:
                need(closed or left[server] <= seen, "a set is left out")
                return words
            need(0 <= word < len(self.choices[server]), "no such set")
            ends = self.choices[server][word]
            need(ends not in seen, "twice the same set")
            seen.add(ends)
            below = [set(sets) for sets in left]
            below[server] &= {ends}
            dead = closed or not self._propagate(below)
            words = self._case(part, words, {**decided, server: ends}, below, dead)

    def _propagate(self, left):
        """Strike off until nothing changes; False if some server has nothing left."""
        n, d = self.n, self.d
        while True:
            if not all(left):
                return False
            before = sum(map(len, left))
            fewest = {(s, v): min(ends.count(v) for ends in left[s]) for s in range(n) for v in range(n)}
            into = [sum(fewest[s, v] for s in range(n)) for v in range(n)]
            keep = []
            for s in range(n):
                keep.append({
                    ends for ends in left[s]
                    if all(into[v] - fewest[s, v] + ends.count(v) <= d for v in set(ends))
                    and (not self.duplex or all(
                        any(back.count(s) == ends.count(v) for back in left[v]) for v in range(n) if v != s))
                })  # fmt: skip
            for s in range(n):
                left[s] &= keep[s]
            if sum(map(len, left)) == before:
                return True

    def _apply(self, number, left):
        """Whether the weights refute; otherwise they strike off."""
        n, d, z = self.n, self.d, self.z
        length = {(s, v): self.lengths[number][s * n + v] for s in range(n) for v in range(n)}
        *prices, tax = self.prices[number]
        need(tax >= 0 and all(abs(price) <= 2**46 for price in (*prices, tax)), "a price out of range")
        if self.duplex:
            need(
                all(prices[s * n + v] == -prices[v * n + s] for s in range(n) for v in range(n)), "prices do not cancel"
            )
        else:
            need(self.filled or min(prices) >= 0, "a negative price")
        arcs = {(s, v) for s in range(n) for ends in left[s] for v in ends}
        dist = {(s, t): 0 if s == t else length[s, t] if (s, t) in arcs else FAR for s in range(n) for t in range(n)}
        for _ in range(n if self.forwards else 0):
            for s, v in arcs:
                for t in range(n):
                    dist[s, t] = min(dist[s, t], length[s, v] + dist[v, t])
        if any(dist[pair] >= FAR for pair in self.wanted):
            return True
        single = [len(sets) == 1 for sets in left]
        complete = all(single)

        def after(v, t):
            """From v to t, not by one arc alone unless v has one set left."""
            if v == t:
                return 0
            if not self.forwards:
                return FAR
            if single[v]:
                return dist[v, t]
            return min((length[v, u] + dist[u, t] for u in range(n) if (v, u) in arcs and u != t), default=FAR)

        value = [{} for _ in range(n)]
        for s in range(n):
            further = {(v, t): after(v, t) for v in range(n) for t in range(n) if (s, v) in arcs}
            for ends in left[s]:
                around = set(ends)
                open_ones = [v for v in around if not single[v] and self.forwards]
                gains, cost = [], 0
                for t in range(n):
                    long = min([FAR, *(length[s, v] + further[v, t] for v in around)])
                    short = [length[s, v] + length[v, t] for v in open_ones if (v, t) in arcs]
                    cost += self.demand[s, t] * long
                    gains.append(self.demand[s, t] * max(0, long - min([FAR, *short])))
                # With no forwarding there is nothing to gain.
                cost -= sum(sorted(gains, reverse=True)[: d * len(open_ones)])
                for members, hop in self.groups:
                    if s in members and not (complete and len(members) <= 12):
                        others = [t for t in members if t != s]
                        ways = [length[s, v] + further[v, t] for v in around for t in others]
                        ways += [length[s, v] + length[v, t] for v in open_ones for t in others if (v, t) in arcs]
                        cost += hop * min([FAR, *ways])
                for v in ends:
                    cost += (prices[s * n + v] if self.duplex else prices[v]) + tax - z * length[s, v]
                value[s][ends] = cost
        total = sum(min(costs.values()) for costs in value)
        total -= tax * d * (2 * (n // 2) if self.duplex else n)
        if not self.duplex:
            total -= d * sum(prices)
        for members, hop in self.groups if complete else []:
            if len(members) <= 12:
                first, *rest = members
                rings = ((first, *order, first) for order in itertools.permutations(rest))
                total += hop * min(sum(dist[pair] for pair in itertools.pairwise(ring)) for ring in rings)
        if total > 0:
            return True
        for s in range(n):
            least = min(value[s].values())
            left[s] -= {ends for ends, cost in value[s].items() if total - least + cost > 0}
        return False

    def _colourable(self, design):
        links = [(s, v) for s, ends in enumerate(design) for v in ends if s < v]

        def place(number, used):
            return number == len(links) or any(
                place(number + 1, used | {(end, plane) for end in links[number]})
                for plane in range(self.d)
                if not used & {(end, plane) for end in links[number]}
            )

        return place(0, frozenset())

    def _image(self, image, decided):
        part, *order = image
        n, traffic = self.n, self.instance.traffic_bytes
        need(part in self.begun and sorted(order) == list(range(n)), "no permutation of a part")
        for i, j in itertools.product(range(n), repeat=2):
            need(traffic[order[i], order[j]] == traffic[i, j], "another traffic")
        groups = sorted((set_of(g.members), g.gradient_bytes) for g in self.instance.allreduce_groups)
        moved = sorted((set_of(order[v] for v in g.members), g.gradient_bytes) for g in self.instance.allreduce_groups)
        need(groups == moved, "other groups")
        taken = {order[s]: set_of(order[v] for v in ends) for s, ends in self.begun[part].items()}
        need(taken == {s: set_of(ends) for s, ends in decided.items()}, "other decisions")


def set_of(servers):
    return tuple(sorted(servers))
