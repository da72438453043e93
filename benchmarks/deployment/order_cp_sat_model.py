"""A model of orders of micro-batches for CP-SAT, which reads ticks from standard input; it needs OR-Tools, not ddlopt.

Passes are intervals of fixed length; those of a kind come in the order of micro-batches, those of a device do not
overlap, and what a micro-batch holds is cumulative from the beginning of F to the ends of B and W.
"""

import json
import sys
import time

from ortools.sat.python import cp_model


def solve(data):
    model, n, most = cp_model.CpModel(), data["micro_batches"], data["most"]
    times = data["times"]
    start = {(k, j): model.new_int_var(0, most, "") for k in range(len(times)) for j in range(n)}
    for k, j in start:
        if j:
            model.add(start[k, j] >= start[k, j - 1] + times[k][0])
    for then, before, lag in data["waits"]:
        for j in range(n):
            model.add(start[then, j] >= start[before, j] + times[before][0] + lag)
    length = model.new_int_var(data["low"], most, "")
    for device, own in enumerate(data["on"]):
        model.add_no_overlap(
            [model.new_fixed_size_interval_var(start[k, j], times[k][0], "") for k in own for j in range(n)]
        )
        held, sizes = [], []
        for forward, end, size in data["held"][device]:
            for j in range(n):
                took = model.new_int_var(0, most, "")
                last = start[end, j] + times[end][0]
                held.append(model.new_interval_var(start[forward, j], took, last, ""))
                sizes.append(size)
        model.add_cumulative(held, sizes, data["room"][device])
        first = 0
        if data["span"]:
            first = model.new_int_var(0, most, "")
            for k in own:
                model.add(first <= start[k, 0])
        for k in own:
            model.add(length >= start[k, n - 1] + times[k][0] - first)
    model.minimize(length)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = data["time_limit"]
    solver.parameters.num_workers = 1
    begun = time.process_time()
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return {
        "objective": solver.objective_value if found else None,
        "bound": solver.best_objective_bound,
        "processor_s": time.process_time() - begun,
    }


if __name__ == "__main__":
    json.dump(solve(json.load(sys.stdin)), sys.stdout)
