"""Schedules of ``torch.distributed.pipelining`` as CSV: a row a rank, a pass a cell, such as ``2F0``."""

import csv
from collections import Counter
from pathlib import Path

from ddlopt.instances.readers.text_files import text_of
from ddlopt.models.deployment.microbatches.evaluate import evaluate_order
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.deployment.microbatches.solution import MicroBatchOrder, Pass, kinds_of, pass_of
from ddlopt.models.errors import SolutionError

_SHOWN = 20
"""Of a cell in a message."""


def read_torch_schedule(path: str | Path, instance: MicroBatchInstance) -> MicroBatchOrder:
    """An order for a pipeline of one chain, whose chunks are the stages; empty cells are passed over.

    Raises
    ------
    SolutionError
        If the file cannot be read, a pass is unknown, missing, twice or on another rank, or none can ever run.
    """
    if len(instance.chains) > 1:
        raise SolutionError(f"{path}: '{instance.name}' has {len(instance.chains)} chains; such a schedule has one")
    chain = instance.chains[0]
    rows = [row for row in csv.reader(text_of(path, SolutionError).splitlines()) if row]
    if len(rows) != instance.devices:
        raise SolutionError(f"{path}: has {len(rows)} rows, and '{instance.name}' has {instance.devices} devices")
    seen: Counter[Pass] = Counter()
    orders = []
    for rank, row in enumerate(rows):
        order = []
        for column, cell in enumerate(row):
            text = cell.strip()
            if not text:
                continue
            where = f"{path}: row {rank}, column {column}: '{text[:_SHOWN]}'"
            found = pass_of(text)
            if found is None:
                raise SolutionError(f"{where} is no pass; expected stage, F, I, W or B, and micro-batch, such as 2F0")
            if found.chunk >= len(chain):
                raise SolutionError(f"{where} is of stage {found.chunk}; there are {len(chain)} (0..{len(chain) - 1})")
            which = found._replace(chunk=chain[found.chunk])
            kinds = kinds_of(instance, which.chunk)
            if which.kind not in kinds:
                raise SolutionError(f"{where} is {which.kind}; stage {found.chunk} has {', '.join(kinds)}")
            n = instance.micro_batches
            if which.micro_batch >= n:
                raise SolutionError(f"{where} is of micro-batch {which.micro_batch}; there are {n} (0..{n - 1})")
            own = instance.chunks[which.chunk].device
            if own != rank:
                raise SolutionError(f"{where} is of stage {found.chunk}, which is on device {own}, not {rank}")
            seen[which] += 1
            if seen[which] > 1:
                raise SolutionError(f"{where} is listed twice; every pass runs once")
            order.append(str(which))
        orders.append(tuple(order))
    for place, chunk in enumerate(chain):
        for kind in kinds_of(instance, chunk):
            for micro_batch in range(instance.micro_batches):
                if not seen[Pass(chunk, kind, micro_batch)]:
                    raise SolutionError(f"{path}: pass {place}{kind}{micro_batch} is missing; every pass runs once")
    solution = MicroBatchOrder(instance=instance.name, instance_digest=instance.digest, orders=tuple(orders))
    for broken in evaluate_order(instance, solution).violations:
        raise SolutionError(f"{path}: {broken}")
    return solution
