"""Archives of the sets of instances for whoever must cite them: a zip file each, with checksums of all that is in it.

    python benchmarks suite/archives --folder build/archives

Each has instances, best known solutions, certificates, checkers of one file, and tables, without dates or machines.
``SHA256SUMS`` beside them has those of the archives. Where the sets are to have a DOI, these files are deposited.
"""

import tempfile
from pathlib import Path

import ddlopt
from benchmarks.harness import Benchmark, Option
from ddlopt.analysis.bench import sets
from ddlopt.analysis.library_site.archives import write_archives


def archives(asked):
    """Instances, size and checksum of the archive of each set."""
    with tempfile.TemporaryDirectory() as apart:
        for made in write_archives(asked.folder or apart, ddlopt.__version__, asked.sets):
            yield {
                "set": made.name,
                "instances": str(made.instances),
                "MB": f"{made.bytes / 1e6:.2f}",
                "SHA-256": made.sha256[:16] + "…",
            }


BENCH = Benchmark(
    archives,
    in_all=False,
    sets=Option(list(sets.TITLES), "sets; all by default", ["tiny"], str, positional=True),
    folder=Option(None, "keep the archives here", type=Path),
)
