"""What cutting planes at the root save a proof over a formulation: nodes without them and with them.

    python benchmarks suite/cuts

Each of the bundled instances is proven twice to the gap that certificates have, and both proofs are checked. Nodes are
those of the file, with those that fix columns; time is the processor's, of search and check.
"""

import time
from fractions import Fraction

from benchmarks.harness import Benchmark, Option
from ddlopt import instances
from ddlopt.certificates.linear import check_tree, program_of
from ddlopt.certificates.linear.cuts import with_cuts
from ddlopt.frontier.linear_proof.tree import prove
from ddlopt.instances.index import PROVEN
from ddlopt.models.catalogue import problem_of
from ddlopt.solvers import proofs

NAMES = (
    "aggregation/hot-racks4-jobs3-p600",
    "aggregation/hot-tiny-p9-s2",
    "aggregation/slots-racks-whole-n24",
    "compression/levels-resnet50-top-k",
    "scheduling/slot-rigid",
    "scheduling/tiny-pollux",
)


def model_and_claim(full):
    """The formulation by which the library's certificate is, in fractions, and what is to be proven of it."""
    instance, solution = instances.load(full), instances.best(full)
    formulation = proofs.formulation_by(instance, next(iter(proofs.formulations(instance))))
    model = proofs._model(instance, formulation)
    sign = 1 if instance.sense == "minimize" else -1
    worth = Fraction(problem_of(instance).evaluate(instance, solution, exact=True).objective)
    target = worth - sign * Fraction(PROVEN) * (1 - proofs._SPARE) * abs(worth)
    return model, proofs._snapped(model, instance, formulation, worth, target)


def trees(asked):
    """A row for each instance."""
    for full in asked.names or NAMES:
        model, claim = model_and_claim(full)
        row = {"instance": full}
        for told, cuts in (("without", False), ("with", True)):
            began = time.process_time()
            tree = prove(model, claim, asked.time_limit, cuts)
            if tree.claim is not None:
                cutoff = claim if tree.cuts else None
                program = with_cuts(program_of(model, tree.claim, fine=bool(tree.cuts), cutoff=cutoff), tree.cuts)
                for _ in check_tree(program, tree.nodes):
                    pass
            row[f"nodes {told}"] = f"{len(tree.nodes)}{'' if tree.complete else ', open'}"
            row[f"s {told}"] = f"{time.process_time() - began:.1f}"
        yield row | {"cuts": len(tree.cuts)}


BENCH = Benchmark(
    trees,
    names=Option([], "instances", ["scheduling/tiny-pollux"], str, positional=True),
    time_limit=Option(120.0, "seconds for each", 10.0),
    in_all=False,
)
