"""Checks a plan for a pipeline of stages in rational numbers: python deployment_pipeline.py INSTANCE SOLUTION.

A stage has layers, replicas, a tensor-parallel degree, and an option for each of its layers. The slowest stage counts.
"""

import gzip
import json
import sys
from fractions import Fraction as F


def check(instance, solution):
    """Seconds of a sample in the slowest stage, None where there is no such, and (rule, where) of what is broken."""
    layers, stages, batch, broken = instance["layers"], solution["stages"], instance["micro_batches"], []
    stage_of, chosen = {}, []
    for place, stage in enumerate(stages):
        where = f"stage {place}"
        if not stage["layers"]:
            broken.append(("every stage has a layer", where))
        for layer in stage["layers"]:
            if not 0 <= layer < len(layers):
                broken.append(("layers are known", where))
            elif layer in stage_of:
                broken.append(("every layer is in one stage", where))
            stage_of.setdefault(layer, place)
        if stage["replicas"] < 1 or batch % stage["replicas"]:
            broken.append(("replicas divide the samples", where))
        chosen.append(options_of(layers, stage, where, broken))
    if any(layer not in stage_of for layer in range(len(layers))):
        broken.append(("every layer is in one stage", "some layer is in none"))
    if sum(stage["replicas"] * stage["tensor"] for stage in stages) > instance["devices"]:
        broken.append(("devices suffice", "all stages"))
    if sum(stage["replicas"] for stage in stages) > batch:
        broken.append(("no more replicas than samples", "all stages"))
    if broken:
        return None, broken
    for edge in instance.get("edges", []):
        if stage_of[edge["maker"]] > stage_of[edge["user"]]:
            broken.append(("no edge leads back", f"{edge['maker']} to {edge['user']}"))
    times = []
    for place, (stage, options) in enumerate(zip(stages, chosen)):
        times.append(time_s(instance, stage, options))
        flying = -(-sum(each["replicas"] for each in stages[place:]) // stage["replicas"])
        used = sum(F(option.get("kept_bytes", 0)) * flying + F(option.get("fixed_bytes", 0)) for option in options)
        if used > F(instance["memory_bytes"]) * (1 + F(1e-9)):  # as `evaluate` allows: data are rounded
            broken.append(("memory suffices", f"stage {place}"))
    return max(times), broken


def options_of(layers, stage, where, broken):
    """The option of each layer of a stage."""
    if len(stage["options"]) != len(stage["layers"]):
        broken.append(("every layer has an option", where))
        return []
    found = []
    for layer, name in zip(stage["layers"], stage["options"]):
        if 0 <= layer < len(layers):
            menus = [menu for menu in layers[layer]["menus"] if menu["tensor"] == stage["tensor"]]
            own = [option for menu in menus[:1] for option in menu["options"] if option["name"] == name]
            if not own:
                broken.append(("options are those of the menu", f"{where}, layer {layer}"))
            found += own[:1]
    return found


def time_s(instance, stage, options):
    """Seconds of a sample in a stage."""
    moved, work, weights = F(0), F(0), F(0)
    for layer, option in zip(stage["layers"], options):
        gathered, scattered = dict(option.get("gathered", [])), dict(option.get("scattered", []))
        for edge in instance.get("edges", []):
            if edge["user"] == layer and edge["maker"] not in stage["layers"]:
                moved += F(edge["size_bytes"]) + F(gathered.get(edge["maker"], 0))
            if edge["maker"] == layer and edge["user"] not in stage["layers"]:
                moved += F(edge["size_bytes"]) + F(scattered.get(edge["user"], 0))
        work += F(option["time_s"])
        weights += F(option.get("weight_bytes", 0))
    copies = stage["replicas"]
    reduced = 4 * (copies - 1) * weights / instance["micro_batches"]
    return (work + (2 * moved + reduced) / F(instance["bandwidth_bytes_per_s"])) / copies


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
