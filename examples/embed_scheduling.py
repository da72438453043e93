"""A scheduling formulation inside somebody else's model: when to rent GPUs whose price changes from slot to slot.

The host pays for the GPUs that it rents in a slot, in contracts of four. It builds :class:`TimeIndexed` into a block of
its own and couples to its port ``running``; prices and contracts are the host's business.
"""

import math

import pyomo.environ as pyo

import ddlopt
from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits

instance = ddlopt.load("scheduling/elastic-j10-t10-g8")
formulation = TimeIndexed()
PRICE = [
    1.0 + 0.8 * math.sin(2 * math.pi * slot / instance.slots) for slot in range(instance.slots)
]  # of a GPU and slot

for scale in (0.0, 0.1, 0.3):
    host = pyo.ConcreteModel("renting")
    host.jobs = pyo.Block()
    formulation.build(host.jobs, instance)
    host.SLOTS = pyo.RangeSet(0, instance.slots - 1)
    host.contracts = pyo.Var(host.SLOTS, domain=pyo.NonNegativeIntegers)
    in_use = {slot: [] for slot in host.SLOTS}
    for job, width, slot in host.jobs.running:
        in_use[slot].append(width * host.jobs.running[job, width, slot])
    host.used_is_rented = pyo.ConstraintList()
    for slot, workers in in_use.items():
        if workers:
            host.used_is_rented.add(sum(workers) <= 4 * host.contracts[slot])
    rent = sum(scale * PRICE[slot] * 4 * host.contracts[slot] for slot in host.SLOTS)
    utility = formulation.objective_value(instance, host.jobs.objective)
    host.profit = pyo.Objective(expr=utility - rent, sense=pyo.maximize)
    outcome = Highs().solve(host, Limits(time_s=60, gap=1e-3))

    schedule = formulation.read(host.jobs, instance)
    evaluation = ddlopt.check(instance, schedule)
    assert evaluation.feasible
    rented = [4 * round(host.contracts[slot].value) for slot in host.SLOTS]
    print(f"rent x {scale}: {outcome.status}, utility {float(evaluation.objective):.2f}, GPUs by slot {rented}")
