"""Checks how gradients are compressed, in rational numbers: python compression_timeline.py INSTANCE SOLUTION.

Gradients are sent one after the other, in the order of the backward pass: each when it is encoded and the wire is free.
Encoding delays the rest of the backward pass. Fused gradients are one message. With lanes, a message passes the lanes
of its options one after the other.
"""

import gzip
import json
import sys
from fractions import Fraction as F


def check(instance, solution):
    """The objective, None where the answer makes no sense, and (rule, where) of what is broken."""
    gradients, menus, choices = instance["gradients"], instance["menus"], solution["choices"]
    count, buckets = len(gradients), solution.get("buckets") or []
    check_names(gradients, menus, solution)
    if len(choices) != count:
        return None, [("every_gradient_has_an_option", "choices")]
    broken = [
        ("option_exists", f"gradient {i}")
        for i in range(count)
        if not 0 <= choices[i] < len(menus[gradients[i]["menu"]])
    ]
    if buckets and (min(buckets) < 1 or sum(buckets) != count):
        broken.append(("buckets_cover_all_gradients", "buckets"))
    if broken:
        return None, broken
    options = [menus[gradient["menu"]][choice] for gradient, choice in zip(gradients, choices)]
    messages, first = [], 0
    for size in buckets or [1] * count:
        messages.append(range(first, first + size))
        first += size
    for number, message in enumerate(messages):
        if len(message) > 1:
            check_bucket(instance, [(gradients[i], options[i]) for i in message], f"bucket {number}", broken)
    time, error = last_s(instance, options, messages), sum((F(option.get("error", 0)) for option in options), F(0))
    for rule, used, budget in (
        ("error_budget_is_kept", error, instance.get("error_budget")),
        ("time_budget_is_kept", time, instance.get("time_budget_s")),
    ):
        if budget is not None and used > F(budget) * (1 + F(1e-9)):  # as `evaluate` allows: sums are rounded
            broken.append((rule, "all gradients"))
    return time if instance.get("goal", "time") == "time" else error, broken


def check_names(gradients, menus, solution):
    """Names that the answer gives for people are those of the instance; ValueError otherwise."""
    choices = solution["choices"]
    labels = [""] * len(gradients)
    if len(choices) == len(gradients):
        own = [menus[gradient["menu"]] for gradient in gradients]
        labels = [menu[choice]["label"] if 0 <= choice < len(menu) else "" for menu, choice in zip(own, choices)]
    for field, names in (("gradients", [gradient["name"] for gradient in gradients]), ("options", labels)):
        if solution.get(field) and list(solution[field]) != names:
            raise ValueError(f"{field} are not those of the instance")


def check_bucket(instance, fused, where, broken):
    """Gradients that are sent as one message."""
    if not instance.get("fusion", False):
        broken.append(("gradients_may_be_fused", where))
    if len({option["label"] for _, option in fused}) > 1:
        broken.append(("bucket_has_one_kind_of_option", where))
    held = 0
    for gradient, _ in fused:
        elements = 1
        for extent in gradient["shape"]:
            elements *= extent
        held += 4 * elements
    if instance.get("largest_bucket_bytes") is not None and held > instance["largest_bucket_bytes"]:
        broken.append(("bucket_is_small_enough", where))


def last_s(instance, options, messages):
    """When the last message is through."""
    lanes = instance.get("lanes", [])
    encode, end, free = F(0), F(0), dict.fromkeys(lanes or ["wire"], F(0))
    for message in messages:
        own = [options[i] for i in message]
        encode += sum(F(option.get("encode_s", 0)) for option in own)
        at = F(instance["gradients"][message[-1]]["ready_s"]) + encode
        if lanes:
            passed = [(lane, [s for o in own for s in o.get("stages", []) if s["lane"] == lane]) for lane in lanes]
        else:
            passed = [("wire", own)]
        for lane, stages in passed:
            if stages:
                lasting = sum(F(s.get("busy_s", 0)) + F(s.get("wire_s", 0)) + F(s.get("decode_s", 0)) for s in stages)
                at = max(at, free[lane]) + lasting + max(F(s.get("launch_s", 0)) for s in stages)
                free[lane] = at
        end = max(end, at)
    return end


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
