"""Times to the target: the best period, the geometric program, AdaComm's formula, communication in each step.

Run: ``python benchmarks/gossip_period.py``. Each cell: seconds to the target (period).
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import ddlopt
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits

_METHODS = ("best-period", "geometric-program", "adacomm", "synchronous")


def main():
    """Print a table of all bundled instances."""
    print("| instance | ρ | C | " + " | ".join(_METHODS) + " | proven within |")
    print("|" + "---|" * (len(_METHODS) + 4))
    for name in ddlopt.names("gossip"):
        if not name.startswith("gossip/period-"):
            continue
        instance = ddlopt.load(name)
        cells, figures = [], None
        for each in _METHODS:
            asked = method(each, "gossip")
            if asked.refuses(instance) is not None:
                cells.append("")
                continue
            found = asked.solve(instance, Limits())
            figures = figures or found
            cells.append(f"{found.objective:.2f} ({found.solution.period:.4g})")
        mixing, wait = figures.details["mixing"], figures.details["communication_s"]
        row = [name.removeprefix("gossip/"), f"{mixing:.4g}", f"{wait:.4g}", *cells, f"{figures.gap:.0e}"]
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
