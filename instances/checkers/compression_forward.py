"""Checks the order in which parts of gradients are sent, in rational numbers.

Run it as python compression_forward.py INSTANCE SOLUTION.

The wire sends one part after the other in the order of the answer, none before its gradient is encoded. The next
forward pass goes through the layers against the order of the backward pass, and waits for each gradient.
"""

import gzip
import json
import sys
from fractions import Fraction as F


def check(instance, solution):
    """The objective in seconds, None where the answer makes no sense, and (rule, where) of what is broken."""
    timeline, allowed = instance["timeline"], instance.get("parts", [1])
    gradients, menus = timeline["gradients"], timeline["menus"]
    choices, parts, order, count = solution["choices"], solution["parts"], solution["order"], len(gradients)
    if len(choices) != count:
        return None, [("every_gradient_has_an_option", "choices")]
    if len(parts) != count:
        return None, [("every_gradient_has_parts", "parts")]
    broken = []
    for i, gradient in enumerate(gradients):
        if not 0 <= choices[i] < len(menus[gradient["menu"]]):
            broken.append(("option_exists", f"gradient {i}"))
        if parts[i] not in allowed:
            broken.append(("number_of_parts_is_allowed", f"gradient {i}"))
        if order.count(i) != parts[i]:
            broken.append(("every_part_is_sent_once", f"gradient {i}"))
    if any(not 0 <= i < count for i in order):
        broken.append(("gradient_exists", "order"))
    if broken:
        return None, broken
    options = [menus[gradient["menu"]][choice] for gradient, choice in zip(gradients, choices)]
    encode, encoded = F(0), []
    for gradient, option in zip(gradients, options):
        encode += F(option.get("encode_s", 0))
        encoded.append(F(gradient["ready_s"]) + encode)
    there, wire = [F(0)] * count, F(0)
    for i in order:
        sent = (F(options[i]["wire_s"]) + F(options[i].get("decode_s", 0))) / parts[i]
        wire = there[i] = max(wire, encoded[i]) + F(options[i].get("launch_s", 0)) + sent
    time = F(0)
    for i in reversed(range(count)):
        time = max(time, there[i]) + F(instance["forward_s"][i])
    error, budget = sum((F(option.get("error", 0)) for option in options), F(0)), timeline.get("error_budget")
    if budget is not None and error > F(budget) * (1 + F(1e-9)):  # as `evaluate` allows: sums are rounded
        broken.append(("error_budget_is_kept", "all gradients"))
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
