"""A training job of one's own: describe it, solve it, and keep instance and design as files."""

import tempfile
from pathlib import Path

import numpy as np

import ddlopt
from ddlopt.models.topology import AllReduceGroup, TopologyInstance

# Six servers with two 100 Gb/s interfaces each. All replicate a model of 50 million fp32 parameters; the first two hold
# an embedding table each and send every server its rows, forward and backward.
SERVERS, ROWS_BYTES = 6, 60e6
traffic = np.zeros((SERVERS, SERVERS))
traffic[:2, :] += ROWS_BYTES
traffic[:, :2] += ROWS_BYTES
np.fill_diagonal(traffic, 0)

instance = TopologyInstance(
    name="my-job",
    source="an example",
    servers=SERVERS,
    degree=2,
    link_bandwidth_bytes_per_s=100e9 / 8,
    allreduce_groups=(AllReduceGroup(members=tuple(range(SERVERS)), gradient_bytes=4 * 50e6),),
    traffic_bytes=traffic,
    compute_s=0.020,
)

heuristic = ddlopt.solve(instance, "topology-finder")
best = ddlopt.solve(instance, "rings-and-routes", time_limit=20, start=heuristic.solution)
for result in (heuristic, best):
    print(f"{result.method}: {1e3 * result.objective:.2f} ms an iteration, at most {result.gap:.1%} from the optimum")

# The check knows nothing of how the design was found; in rational arithmetic it has no rounding either.
evaluation = ddlopt.check(instance, best.solution, exact=True)
assert evaluation.feasible
print(f"checked in rational arithmetic: {float(evaluation.objective):.12g} s")

with tempfile.TemporaryDirectory() as folder:
    files = Path(folder, "my-job.json"), Path(folder, "my-job.design.json")
    for file, document in zip(files, (instance, best.solution), strict=True):
        file.write_text(document.to_json())
    assert ddlopt.check(*files).feasible  # as `ddlopt check my-job.json my-job.design.json`
