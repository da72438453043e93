"""Checks a uniform plan of a training step in rational numbers: python deployment_step.py INSTANCE SOLUTION.

Degrees t (tensor), c (context), d (data), p (pipeline), e (expert); v chunks a device, b samples a micro-batch, n
micro-batches. Blocks are cut into p v chunks; stage s has chunks s, s + p, ... With the time T_s of stage s for a
micro-batch, a step takes n max T_s + (longest chunk / longest stage) (sum T_s - max T_s) + what is sent in the end
beyond what is hidden, and the optimizer. A device keeps weights, gradients and the state of the optimizer, divided by
their copies as the level of sharding says, and the activations of micro-batches under way.
"""

import gzip
import json
import sys
from fractions import Fraction as F
from math import gcd

DIMENSIONS = ["tensor", "context", "data", "pipeline"]
DEGREES = ("tensor", "context", "expert", "data", "pipeline", "interleaving", "micro_batch")
DEFAULTS = dict.fromkeys(DEGREES, 1) | {
    "sharding": 0,
    "sequence_parallel": False,
    "option": "none",
    "recomputed": 0,
    "order": DIMENSIONS,
}
ORDERS = [DIMENSIONS, ["tensor", "context", "pipeline", "data"]]
KEPT = {"weights": 3, "gradients": 2, "optimizer": 1}
"""What copies share, and from which level of sharding on."""


def of_block(block, plan):
    """The way of a block at the degrees of a plan, None if there is none."""
    wanted = (plan["tensor"], plan["context"], plan["expert"] if block.get("experts") else 1, plan["micro_batch"])
    for way in block["ways"]:
        key = (way["tensor"], way.get("context", 1), way.get("expert", 1), way["micro_batch"])
        if key == wanted and bool(way.get("sequence_parallel")) == plan["sequence_parallel"]:
            return way
    return None


def degrees(instance, plan):
    """What is broken of degrees, or of what blocks have at them; there is no time then."""
    broken = [("degrees are positive", name) for name in DEGREES if plan[name] < 1]
    if broken:
        return broken
    blocks, samples = sum(block.get("count", 1) for block in instance["blocks"]), plan["micro_batch"] * plan["data"]
    if plan["tensor"] * plan["context"] * plan["data"] * plan["pipeline"] > instance["devices"]:
        broken.append(("devices suffice", "all degrees"))
    if instance["global_batch"] % samples:
        return [*broken, ("micro-batches are whole", "data, micro_batch")]
    chunks = plan["pipeline"] * plan["interleaving"]
    if plan["interleaving"] > 1 and (plan["pipeline"] == 1 or instance["global_batch"] // samples % plan["pipeline"]):
        broken.append(("interleaved micro-batches come in rounds", "interleaving"))
    if plan["interleaving"] > instance.get("interleaving", 8):
        broken.append(("interleaving is allowed", "interleaving"))
    if chunks > blocks:
        return [*broken, ("every chunk has a block", "pipeline, interleaving")]
    if not 0 <= plan["recomputed"] <= -(-blocks // chunks):
        broken.append(("chunks have the recomputed blocks", "recomputed"))
    if plan["sharding"] not in instance.get("sharding", [0, 1, 2, 3]):
        broken.append(("sharding is allowed", "sharding"))
    if plan["order"] not in instance.get("orders", ORDERS):
        broken.append(("the order is allowed", "order"))
    if plan["tensor"] * plan["context"] * plan["data"] % plan["expert"]:
        broken.append(("the expert degree divides a stage's devices", "expert"))
    return broken


def ways(instance, plan):
    """What is broken of ways and options; there is no time then."""
    broken = []
    if plan["expert"] > 1 and not any(block.get("experts") for block in instance["blocks"]):
        broken.append(("only experts have an expert degree", "expert"))
    for block in (instance["embedding"], *instance["blocks"], instance["head"]):
        way, inner = of_block(block, plan), block is not instance["embedding"] and block is not instance["head"]
        if way is None:
            broken.append(("blocks have these degrees", block["name"]))
        elif inner:
            names = [option["name"] for option in way["options"]]
            if plan["option"] not in names or (plan["recomputed"] and "full" not in names):
                broken.append(("options are those of the block", block["name"]))
            if plan["recomputed"] and plan["option"] != names[0]:
                broken.append(("recomputed blocks are beside the first option", block["name"]))
    return broken


def stages(instance, plan):
    """For each stage (block, way, option, whether it is an end); shorter chunks are the last, the first, the others."""
    kinds = instance.get("places") or [
        k for k, block in enumerate(instance["blocks"]) for _ in range(block.get("count", 1))
    ]
    chunks = plan["pipeline"] * plan["interleaving"]
    base, longer = divmod(len(kinds), chunks)
    shorter = [chunks - 1, 0, *range(chunks - 2, 0, -1)][: chunks - longer] if longer else []
    found = [[] for _ in range(plan["pipeline"])]
    for end, stage in ((instance["embedding"], found[0]), (instance["head"], found[-1])):
        way = of_block(end, plan)
        stage.append((end, way, way["options"][0], True))
    begin = 0
    for chunk in range(chunks):
        size = base + (1 if longer and chunk not in shorter else 0)
        for place, kind in enumerate(kinds[begin : begin + size]):
            block = instance["blocks"][kind]
            way = of_block(block, plan)
            name = "full" if place < plan["recomputed"] else plan["option"]
            option = next(option for option in way["options"] if option["name"] == name)
            found[chunk % plan["pipeline"]].append((block, way, option, False))
        begin += size
    return found


def members(instance, plan):
    """For each tier, how many of a device's group of every dimension are in its unit."""
    found = []
    for tier in instance["tiers"]:
        inside, room = {}, tier["size"]
        if tier is instance["tiers"][-1]:
            room = plan["tensor"] * plan["context"] * plan["data"] * plan["pipeline"]
        for dimension in plan["order"]:
            inside[dimension] = gcd(plan[dimension], room)
            room = room // inside[dimension] if inside[dimension] == plan[dimension] else 1
        copies = inside["context"] * inside["data"]
        inside["expert"] = min(plan["expert"], inside["tensor"] * copies)
        inside["copies"], inside["expert copies"] = copies, max(1, inside["tensor"] * copies // plan["expert"])
        found.append(inside)
    return found


class Network:
    """Seconds of messages among the members of a group."""

    def __init__(self, instance, plan):
        self.tiers, self.inside = instance["tiers"], members(instance, plan)

    def longest(self, group, sent, messages):
        """The slowest tier that the group spans; sent(below, tier) is what crosses it with ``below`` members below."""
        below, longest, latency = 1, F(0), F(0)
        for tier, inside in zip(self.tiers, self.inside):
            if inside[group] > below:
                longest = max(longest, sent(below, tier) / F(tier["bandwidth_bytes_per_s"]))
                latency, below = F(tier.get("latency_s", 0)), inside[group]
        return longest + messages * latency

    def ring(self, group, size, messages):
        """Bytes that each device of a ring sends."""
        return self.longest(group, lambda below, tier: size / below, messages)

    def experts(self, degree, size, messages):
        """All-to-all, of the bytes that each device has."""
        return self.longest("expert", lambda below, tier: size * (degree - below) / degree, messages)

    def collective(self, group, degree, size, rounds):
        """A gather or a scatter (one round) or an all-reduce (two); of switches each is the whole."""

        def sent(below, tier):
            switch = tier.get("collective", "ring") == "switch"
            return (size if switch else size * rounds * (degree - 1) / degree) / below

        return self.longest(group, sent, 1)

    def neighbour(self, degree, size):
        """To the next stage, over the innermost tier that has all stages in a unit."""
        for tier, inside in zip(self.tiers, self.inside):
            if inside["pipeline"] == degree:
                return size / F(tier["bandwidth_bytes_per_s"]) + F(tier.get("latency_s", 0))
        raise ValueError("no tier has all stages")


def micro_batch_s(instance, plan, stage, network):
    """Seconds of a stage for a micro-batch: those of computation, and all."""
    computation, sent = F(0), F(0)
    for _, _, option, _ in stage:
        computation += F(option["forward_s"]) + F(option["backward_s"])
        messages = option.get("messages", 0)
        for dimension in ("tensor", "context"):
            if option.get(f"{dimension}_bytes"):
                sent += network.ring(dimension, F(option[f"{dimension}_bytes"]), messages)
        if option.get("expert_bytes"):
            sent += network.experts(plan["expert"], F(option["expert_bytes"]), messages)
    if plan["pipeline"] > 1:
        shared = plan["context"] * (plan["tensor"] if plan["sequence_parallel"] else 1)
        size = F(instance.get("handed_bytes", 0)) * plan["micro_batch"] / shared
        sent += 2 * plan["interleaving"] * network.neighbour(plan["pipeline"], size)
    return computation, computation + sent


def parameters(instance, plan, stage):
    """(parameters of a device, their copies, the group of these): those of experts, and the others."""
    own = sum((F(way["parameters"]) for _, way, _, _ in stage), F(0))
    ends = [(block, way) for block, way, _, end in stage if end]
    if instance.get("tied") and len(ends) == 2:
        own -= F(ends[1][1]["parameters"])
    experts = sum((F(way.get("expert_parameters", 0)) for _, way, _, _ in stage), F(0))
    copies = plan["context"] * plan["data"]
    return (own, copies, "copies"), (experts, plan["tensor"] * copies // plan["expert"], "expert copies")


def end_s(instance, plan, stage, network, computation, rounds):
    """Seconds after the last micro-batch, and of what is sent with each beyond what is hidden."""
    at_end, each, updated, level = F(0), F(0), F(0), plan["sharding"]
    for count, copies, group in parameters(instance, plan, stage):
        updated += count / (copies if level else 1)
        if copies == 1 or not count:
            continue
        gradients = count * F(instance.get("gradient_bytes", 4))
        gather = network.collective(group, copies, count * F(instance.get("weight_bytes", 2)), 1)
        scatter, reduce = (network.collective(group, copies, gradients, times) for times in (1, 2))
        at_end += (reduce, scatter + gather, gather, 0)[level]
        each += (0, 0, scatter, scatter + 2 * gather)[level]
    hidden = F(instance.get("overlap", 1))
    backward = sum((F(option["backward_s"]) for _, _, option, _ in stage), F(0))
    exposed = max(F(0), at_end - hidden * backward) + rounds * max(F(0), each - hidden * computation)
    return exposed + updated * F(instance.get("optimizer_s", 0))


def memory(instance, plan, place, stage, rounds, share):
    """Bytes of a device of a stage."""
    total, p, v = F(0), plan["pipeline"], plan["interleaving"]
    sizes = {"weights": ("weight_bytes", 2), "gradients": ("gradient_bytes", 4), "optimizer": ("optimizer_bytes", 12)}
    for count, copies, _ in parameters(instance, plan, stage):
        for name, level in KEPT.items():
            total += count * F(instance.get(*sizes[name])) / (copies if plan["sharding"] >= level else 1)
    flying = min(rounds, p - place) if v == 1 else min(rounds * v, 2 * (p - 1 - place) + (v - 1) * p + 1)
    for _, _, option, end in stage:
        total += F(option.get("kept_bytes", 0)) * (1 if end else flying * share)
    total += max(F(option.get("transient_bytes", 0)) for _, _, option, _ in stage)
    if plan["sharding"] == 3:
        whole = sorted(F(way["parameters"]) + F(way.get("expert_parameters", 0)) for _, way, _, _ in stage)
        total += sum(whole[-2:]) * F(instance.get("weight_bytes", 2))
    return total


def check(instance, solution):
    """Seconds of a step, None where the answer makes no sense, and (rule, where) of what is broken."""
    plan = DEFAULTS | solution
    if sorted(set(plan["order"])) != sorted(set(plan["order"]) & set(DIMENSIONS)):
        raise ValueError("order names dimensions")
    broken = degrees(instance, plan) or ways(instance, plan)
    if broken:
        return None, broken
    rounds = instance["global_batch"] // (plan["micro_batch"] * plan["data"])
    blocks, p, v = sum(block.get("count", 1) for block in instance["blocks"]), plan["pipeline"], plan["interleaving"]
    share, network = F(-(-blocks // (p * v)), -(-blocks // p)), Network(instance, plan)
    times, ends = [], []
    for place, stage in enumerate(stages(instance, plan)):
        computation, time = micro_batch_s(instance, plan, stage, network)
        times.append(time)
        ends.append(end_s(instance, plan, stage, network, computation, rounds))
        used = memory(instance, plan, place, stage, rounds, share)
        if used > F(instance["memory_bytes"]) * (1 + F(1e-9)):  # as `evaluate` allows: data are rounded
            broken.append(("memory suffices", f"stage {place}"))
    return rounds * max(times) + share * (sum(times) - max(times)) + max(ends), broken


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
