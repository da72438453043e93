"""Proves the bundled instances that are called proven, with certificates that the checker accepts.

    python benchmarks suite/certificates --time-limit 60

Each is tried in a process of its own, as ``ddlopt certify`` does it: the combinatorial bound in rational numbers, then
a certificate of the problem's own, then a tree over a formulation. Certificates up to 200 kB go into the library; the
index has kind, size, digest, gap and times of all of them. What has been tried with as much time, with the instance as
it is, is left alone, so that a run that was stopped goes on where it was. Times are processor seconds. With
``--checking`` nothing is proven: trees of the library are checked once more, and the index has how long that took.
"""

import datetime
import hashlib
import multiprocessing
import time
from contextlib import suppress

from benchmarks.harness import Benchmark, Option
from ddlopt import check_certificate, instances
from ddlopt.analysis.certify import certified as certified_with
from ddlopt.analysis.index import gap_of
from ddlopt.certificates.topology import DesignCertificate
from ddlopt.instances.index import PROVEN
from ddlopt.instances.library import certificates
from ddlopt.instances.library.records import read
from ddlopt.models.catalogue import FAMILY_NAMES, problem_of
from ddlopt.models.errors import DdloptError
from ddlopt.models.reading import reading_up_to
from ddlopt.solvers.contracts import Limits

LARGEST_BYTES = 200_000
_LARGEST_READ_BYTES = 2**30
ALLOWED = 3
"""Times the limit after which a process is given up: models are built and checked beside the search."""


def proven(names):
    """Instances that the records call proven."""
    for family in FAMILY_NAMES:
        known = read(family)
        for full in instances.names(family):
            if not names or full in names or family in names:
                gap = gap_of(known.get(full.split("/")[1]), instances.load(full))
                if gap is not None and gap <= PROVEN:
                    yield full


def prove(full, limit_s, channel):
    """Prove one; the row for the index goes through ``channel``."""
    instance = instances.load(full)
    solution = instances.best(full)
    began = time.process_time()
    try:
        certificate = certified_with(instance, None, None, Limits(limit_s, PROVEN), 0, None).certificate
        both_s = time.process_time() - began
        path = certificates.path_of(full, isinstance(certificate, DesignCertificate))
        certificate.save(path)
        began = time.process_time()
        with reading_up_to(_LARGEST_READ_BYTES):
            checked = check_certificate(instance, path)
        checking_s = time.process_time() - began
        proving_s = max(0.0, both_s - checking_s)  # a proof has been checked before it is handed over
    except (DdloptError, MemoryError, ArithmeticError) as problem:
        channel.send({"evidence": "solver", "reason": f"{type(problem).__name__}: {problem}"[:200]})
        return
    objective = problem_of(instance).evaluate(instance, solution, exact=True).objective
    sign = 1 if instance.sense == "minimize" else -1
    gap = float(sign * (objective - checked.bound) / abs(objective)) if objective else 0.0
    data = path.read_bytes()
    closed = gap <= PROVEN
    row = {"kind": checked.kind, "method": getattr(certificate, "method", None), "gap": gap, "nodes": checked.nodes}
    row |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    row |= {"proving_s": round(proving_s, 3), "checking_s": round(checking_s, 3)}
    if not closed or len(data) > LARGEST_BYTES:
        path.unlink()
    if closed:
        evidence = "combinatorial" if checked.kind == "combinatorial" else "certificate"
        channel.send({"evidence": evidence} | row)
    else:
        channel.send({"evidence": "solver", "reason": f"gap of {gap:.2e} left in time"} | row)


def apart(full, limit_s):
    """The row of an instance, from a process that may be ended."""
    near, far = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=prove, args=(full, limit_s, far))
    process.start()
    far.close()
    row = {"evidence": "solver", "reason": "building or checking took too long"}
    with suppress(EOFError):
        if near.poll(ALLOWED * limit_s + 5):
            row = near.recv()
    process.kill()
    process.join()
    for path in certificates.paths_of(full):
        if row["evidence"] == "solver" or path.suffix != (".ddlcert" if row["kind"] == "design" else ".gz"):
            path.unlink(missing_ok=True)
    return row


def settled(before, full, limit_s):
    """Whether the instance has a certificate, or as much time did not give one."""
    if before is None or before["instance_digest"] != instances.load(full).digest:
        return False
    return before["evidence"] != "solver" or before["limit_s"] >= limit_s


def check_again(full, channel):
    """Processor seconds of the check of a bundled certificate, as of a proof: it has been checked before."""
    instance, path = instances.load(full), certificates.file_of(full)
    check_certificate(instance, path)
    began = time.process_time()
    check_certificate(instance, path)
    channel.send(round(time.process_time() - began, 3))


def timed(names):
    """A row for each tree of the library over a formulation that is checked again, in a process of its own."""
    known = certificates.entries()
    trees = [full for full in sorted(known) if known[full].get("kind") == "linear" and certificates.file_of(full)]
    for full in trees:
        if not names or full in names or full.split("/")[0] in names:
            near, far = multiprocessing.Pipe(duplex=False)
            process = multiprocessing.get_context("fork").Process(target=check_again, args=(full, far))
            process.start()
            far.close()
            before, known[full]["checking_s"] = known[full]["checking_s"], near.recv()
            process.join()
            yield {"instance": full, "s": f"{known[full]['checking_s']:.3f}", "before": f"{before:.3f}"}
    certificates.write_entries(known)


def certified(asked):
    """A row for each instance."""
    if asked.checking:
        yield from timed(asked.names)
        return
    known, today = certificates.entries(), datetime.datetime.now(datetime.UTC).date().isoformat()
    names = list(proven(asked.names))
    left = [full for full in names if not settled(known.get(full), full, asked.time_limit)]
    print(f"{len(left)} of {len(names)} instances are to be proven\n", flush=True)
    for full in left:
        row = apart(full, asked.time_limit)
        made = {"instance_digest": instances.load(full).digest, "limit_s": asked.time_limit, "day": today}
        known[full] = made | row
        certificates.write_entries(known)
        yield {"instance": full} | {name: str(row.get(name, "")) for name in ("evidence", "kind", "gap", "bytes")}


BENCH = Benchmark(
    certified,
    names=Option([], "families or instances; all by default", ["topology/tiny-n4-d2"], str, positional=True),
    checking=Option(False, "check the trees of the library once more, for the times"),
    time_limit=Option(60.0, "seconds of search for each", 5.0),
    in_all=False,
)
