"""Proofs for what is known of an instance, and their check."""

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ddlopt import instances
from ddlopt.certificates.linear import LinearCertificate
from ddlopt.models import files
from ddlopt.models.catalogue import problem_of
from ddlopt.models.contracts import Instance, Solution
from ddlopt.models.errors import NotApplicableError, SolutionError, SolverError, a_or_an
from ddlopt.models.sizes import require_seed
from ddlopt.solvers import catalogue, proofs
from ddlopt.solvers.accepted_error import accepted
from ddlopt.solvers.certified import by_certificate
from ddlopt.solvers.certify import Gate, MethodOutput
from ddlopt.solvers.choice import within
from ddlopt.solvers.contracts import Limits, ProgressCallback, Result
from ddlopt.solvers.options import Variant
from ddlopt.solvers.proofs import Certificate, Proven

if TYPE_CHECKING:
    from ddlopt.certificates.topology import Checked, DesignCertificate


def certify(
    instance: Instance | str | Path,
    method: str | None = None,
    *,
    out: str | Path | None = None,
    time_limit: float | None = None,
    gap: float = 1e-4,
    threads: int = 1,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> "tuple[Result, DesignCertificate | Certificate]":
    """A proof for what is known of an instance; it has been checked before you see it.

    It begins with the best known solution; of an instance that is not bundled, with what :func:`~ddlopt.api.solve`
    finds in half of the time.

    Parameters
    ----------
    instance : Instance, str or Path
        See :func:`~ddlopt.api.load`.
    method : str, optional
        ``"combinatorial"``, ``"branch-and-bound"`` of topologies, or an exact method whose formulation a tree is to be
        written for. By itself the combinatorial bound is taken if it closes the gap, then what the problem has of its
        own, of topologies listed digraphs and branch and bound, then formulations, the default's first.
    out : str or Path, optional
        Write the certificate here.
    time_limit, gap, threads, seed, progress
        See :func:`~ddlopt.api.solve`. A search that is stopped has a certificate for the bound that it reached. Where a
        formulation's objectives are on a grid, the gap that is proven is 0.

    Returns
    -------
    result : Result
        Its ``evidence`` is ``certificate`` unless the combinatorial bound is better than what the search proved.
    certificate : DesignCertificate, LinearCertificate, OwnCertificate or CombinatorialCertificate

    Raises
    ------
    UnknownNameError, NotApplicableError, OptionError, SolverError
        As :func:`~ddlopt.api.solve`; also if the method writes no certificates, or nothing could be proven in time.
    """
    found = certified(instance, method, out, Limits(time_limit, gap, threads), seed, progress)
    return found.result, found.certificate


@dataclass(frozen=True)
class Certified:
    """An answer, the proof of its bound, and what the checker has said of the proof."""

    result: Result
    certificate: "DesignCertificate | Certificate"
    proven: "Checked | Proven"


def certified(
    instance: Instance | str | Path,
    method: str | None,
    out: str | Path | None,
    limits: Limits,
    seed: int,
    progress: ProgressCallback | None,
) -> Certified:
    """What :func:`certify` does."""
    if out is not None:
        files.writable(out)
    problem, gap, time_limit = instances.load(instance), limits.gap, limits.time_s
    require_seed(seed)
    if method is not None and method != proofs.COMBINATORIAL_METHOD:
        if method not in problem_of(problem).relaxations:
            asked = catalogue.method(method, problem.family)
            chosen: Any = asked.chosen if isinstance(asked, Variant) else asked
            if hasattr(chosen, "certified"):
                return _own_certificate(problem, method, chosen, out, limits, seed, progress)
        proofs.formulation_by(problem, method)
    began = time.perf_counter()
    solution = best_known(problem)
    if solution is None:
        opening = Limits(None if time_limit is None else time_limit / 2, gap)
        solution = within(catalogue.default(problem), opening, None).solve(problem, opening, 0, progress).solution
    if solution is None:
        raise SolverError(f"no solution of '{problem.name}' is known, so there is no bound to prove")
    certificate: Certificate | None = None
    closed = False
    own: Any = catalogue.certifying(problem) if method is None else None
    if own is not None:
        # Listing digraphs with few hops takes a part of the time that branch and bound does, or ends at once.
        half = None if time_limit is None else time_limit / 2
        certificate, closed = proofs.prove(problem, solution, gap, half, trees=False)
        if not closed:
            if time_limit is not None:
                # A limit is positive; proofs that are late leave next to nothing.
                limits = replace(limits, time_s=max(0.01, time_limit - (time.perf_counter() - began)))
            return _own_certificate(problem, own.name, own, out, limits, seed, progress)
    if not closed:
        left = None if time_limit is None else max(0.0, time_limit - (time.perf_counter() - began))
        certificate, closed = proofs.prove(problem, solution, gap, left, method)
    if certificate is None:
        raise SolverError(
            f"no bound of '{problem.name}' was proven within the limit, or none of its formulations can be proven"
        )
    proven = proofs.check(problem, certificate)
    gate = Gate(problem, "certify", limits, seed, runtime_s=time.perf_counter() - began, exact=True)
    # A proof speaks of all plans: who asks for one is told what this one loses, and has the proof.
    answered = accepted(problem, gate.certify(MethodOutput(solution)), None, named=True)
    result = by_certificate(answered, proven.bound, gap)
    if out is not None:
        certificate.save(out)
    return Certified(result, certificate, proven)


def best_known(instance: Instance) -> Solution | None:
    """The best solution in the library, if the instance is bundled."""
    name = f"{instance.family}/{instance.name}"
    if name not in instances.names(instance.family) or instances.load(name).digest != instance.digest:
        return None
    return instances.best(name)


def _own_certificate(
    problem: Instance,
    method: str,
    chosen: Any,
    out: str | Path | None,
    limits: Limits,
    seed: int,
    progress: ProgressCallback | None,
) -> Certified:
    """The answer and the certificate of a method that writes one itself."""
    result, certificate = chosen.certified(problem, limits, seed, progress)
    try:
        proven = check_certificate(problem, certificate)
    except SolutionError as problem_found:
        raise SolverError(f"{method} wrote a certificate that does not hold: {problem_found}") from None
    result = by_certificate(result, proven.bound, limits.gap)
    if out is not None:
        certificate.save(out)
    return Certified(result, certificate, proven)


def check_certificate(
    instance: Instance | str | Path,
    certificate: "DesignCertificate | Certificate | str | Path",
    *,
    time_limit: float | None = None,
    vipr: str | Path | None = None,
) -> "Checked | Proven":
    """Check that a certificate proves its bound for an instance, as if an enemy had written it.

    Parameters
    ----------
    instance : Instance, str or Path
        See :func:`~ddlopt.api.load`.
    certificate : DesignCertificate, LinearCertificate, OwnCertificate, CombinatorialCertificate, str or Path
        The object, or its file.
    time_limit : float, optional
        Seconds after which it is given up: a hostile file can make a check long.
    vipr : str or Path, optional
        Write a tree over a formulation that holds here in VIPR's format as well, packed where the name ends in ``.gz``.

    Returns
    -------
    Checked or Proven
        The bound, exactly: of a topology's own branch and bound in bytes on the busiest link and in seconds of an
        iteration; else on the objective, in the unit of the instance.

    Raises
    ------
    RefutedError
        A ``SolutionError``: if it proves nothing.
    SolutionError
        If it is no certificate, or one of another instance.
    SolverError
        If the time limit has passed; nothing is proved then, and nothing refuted.
    NotApplicableError
        If the instance is larger than certificates can speak of, or ``vipr`` is given for a proof that is no tree over
        a formulation.
    """
    from ddlopt.certificates.topology import DesignCertificate
    from ddlopt.certificates.topology import check_certificate as check
    from ddlopt.models.topology import TopologyInstance

    problem = instances.load(instance)
    seconds = Limits(time_limit).time_s
    given = proofs.read(certificate, problem) if isinstance(certificate, str | Path) else certificate
    if vipr is not None:
        if not isinstance(given, LinearCertificate):
            raise NotApplicableError("VIPR's format takes a tree over a formulation; this proof is of another kind")
        files.writable(vipr)
    if isinstance(given, Certificate):
        return proofs.check(problem, given, seconds, vipr)
    if not isinstance(problem, TopologyInstance):
        raise SolutionError(f"this is no certificate of '{problem.name}', which is {a_or_an(problem.kind)}")
    if not isinstance(given, DesignCertificate):
        assert not isinstance(certificate, DesignCertificate)
        given = DesignCertificate.from_file(certificate)  # type: ignore[arg-type]
    return check(problem, given, math.inf if seconds is None else seconds)
