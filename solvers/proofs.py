"""Proofs of bounds for every problem: made from the best known solution, and checked as if an enemy had written them.

Kinds of files: of a topology's own branch and bound (:mod:`ddlopt.certificates.topology`); of a tree over a
linear formulation (:mod:`ddlopt.certificates.linear`); of a kind that the problem has for itself
(:mod:`ddlopt.certificates.own`); and, where the combinatorial bound says enough, its name.
"""

import codecs
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from ddlopt.certificates.linear import LinearCertificate, check_tree, exact_model, program_of, step_of
from ddlopt.certificates.linear.cuts import derive, with_cuts
from ddlopt.certificates.linear.objective import bound_of, claim_for
from ddlopt.certificates.linear.rows import ExactModel
from ddlopt.certificates.linear.vipr import vipr_text
from ddlopt.certificates.own import OwnCertificate, exact_bound_of, own_certificate
from ddlopt.models.catalogue import problem_of
from ddlopt.models.contracts import Formulation, Instance, Solution
from ddlopt.models.errors import DdloptError, NotApplicableError, RefutedError, SolutionError, SolverError, a_or_an
from ddlopt.models.files import write_whole_packed
from ddlopt.models.problem import path_of
from ddlopt.models.reading import UnreadableError, decoded, is_fraction, parsed, read_bytes, unpacked
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import formulation_of
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.provers import prover, tree_prover

COMBINATORIAL = "ddlopt combinatorial certificate"
COMBINATORIAL_METHOD = "combinatorial"
_FIELDS = {"format", "version", "instance", "instance_digest", "claim"}
_MOST_COLUMNS = 200_000
"""Of a formulation that is proven: reading it in fractions takes some seconds."""
_SPARE = Fraction(1, 10**6)
"""Part of the gap that is left over, so that a last digit which another processor rounds otherwise does not matter."""


@dataclass(frozen=True)
class CombinatorialCertificate:
    """Says that the combinatorial bound proves ``claim``; the checker calculates it anew, in rational numbers."""

    instance: str
    instance_digest: str
    claim: Fraction

    @property
    def text(self) -> str:
        """The file's content."""
        data = {"format": COMBINATORIAL, "version": 1, "instance": self.instance}
        return json.dumps(data | {"instance_digest": self.instance_digest, "claim": str(self.claim)}, indent=1) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the file, packed where its name ends in ``.gz``; it appears whole or not at all."""
        write_whole_packed(path, self.text)


Certificate = CombinatorialCertificate | LinearCertificate | OwnCertificate


@dataclass(frozen=True)
class Proven:
    """What the checker says of a certificate.

    Parameters
    ----------
    kind : str
        ``combinatorial``, ``linear``, or the problem's own.
    bound : Fraction
        On the objective of every solution, in the instance's unit.
    says : str
        Of what this holds without any further assumption, in a line for people.
    nodes : int
        Of the tree; 0 where there is none.
    """

    kind: str
    bound: Fraction
    says: str
    nodes: int = 0


def read(path: str | Path, instance: Instance) -> Certificate | None:
    """A certificate from a file, as one of an instance; None if it is none of those of this module.

    Raises
    ------
    SolutionError
        If it is one and damaged.
    """
    try:
        data = read_bytes(path)
        data = unpacked(data) if data[:2] == b"\x1f\x8b" else data
    except UnreadableError as problem:
        raise SolutionError(f"{path}: cannot be read: {problem}") from None
    if (
        data.removeprefix(codecs.BOM_UTF8).lstrip()[:1] != b"{"
        or b"ddlopt topology certificate" in data[:4096].partition(b"\n")[0]
    ):
        return None
    try:
        found = parsed(decoded(data))
    except (ValueError, RecursionError) as problem:
        raise SolutionError(f"{path}: is no certificate: {problem}") from None
    if isinstance(found, dict) and found.get("format") == COMBINATORIAL:
        return _combinatorial(found, str(path))
    own = own_certificate(path_of(instance))
    if own is not None and isinstance(found, dict) and found.get("format") == own.format:
        return own.from_data(found, str(path))
    return LinearCertificate.from_data(found, str(path))


def _combinatorial(data: dict[str, Any], origin: str) -> CombinatorialCertificate:
    texts = [data.get(name) for name in ("instance", "instance_digest", "claim")]
    known = set(data) == _FIELDS and type(data["version"]) is int and data["version"] == 1
    if not known or not all(isinstance(each, str) for each in texts):
        raise SolutionError(f"{origin}: is no certificate of a combinatorial bound; expected {sorted(_FIELDS)}")
    if not is_fraction(data["claim"]):
        raise SolutionError(f"{origin}: claim is a fraction like -3/4")
    return CombinatorialCertificate(data["instance"], data["instance_digest"], Fraction(data["claim"]))


def check(
    instance: Instance, certificate: Certificate, time_limit: float | None = None, vipr: str | Path | None = None
) -> Proven:
    """Check a certificate; a tree over a formulation is then written to ``vipr`` in VIPR's format.

    Raises
    ------
    RefutedError
        If it proves nothing.
    SolutionError
        If it is one of another instance, or of a formulation that is another one now.
    SolverError
        If the time limit has passed.
    """
    if certificate.instance_digest != instance.digest:
        raise SolutionError(
            f"the certificate is of '{certificate.instance}' (digest {certificate.instance_digest[:12]}…), "
            f"not of '{instance.name}' (digest {instance.digest[:12]}…)"
        )
    if isinstance(certificate, CombinatorialCertificate):
        return _check_combinatorial(instance, certificate)
    expired = _expired(time_limit)
    if isinstance(certificate, OwnCertificate):
        if own_certificate(path_of(instance)) is not type(certificate):
            raise SolutionError(f"a {certificate.kind} certificate says nothing of {a_or_an(instance.kind)}")
        cases = certificate.check(instance, expired)
        if expired():
            raise _given_up(time_limit)
        return Proven(certificate.kind, certificate.claim, certificate.says, cases)
    return _check_linear(instance, certificate, time_limit, vipr)


def _expired(time_limit: float | None) -> Callable[[], bool]:
    """A function that says whether the limit, counted from now, has passed."""
    end = None if time_limit is None else time.monotonic() + time_limit
    return lambda: end is not None and time.monotonic() > end


def _given_up(time_limit: float | None) -> SolverError:
    return SolverError(f"the check of the certificate was given up after {time_limit:g} s; nothing is refuted")


def _check_combinatorial(instance: Instance, certificate: CombinatorialCertificate) -> Proven:
    exact_bound = exact_bound_of(path_of(instance))
    if exact_bound is None:
        raise NotApplicableError(
            f"the combinatorial bound of {a_or_an(instance.kind)} is not recomputed in rational numbers"
        )
    found, claim = exact_bound(instance), certificate.claim
    if claim > found if instance.sense == "minimize" else claim < found:
        raise RefutedError(f"the combinatorial bound of '{instance.name}' is {found}, not {claim}")
    return Proven("combinatorial", claim, "of the instance, recomputed in rational numbers")


def _check_linear(
    instance: Instance, certificate: LinearCertificate, time_limit: float | None, vipr: str | Path | None
) -> Proven:
    expired = _expired(time_limit)
    formulation = formulation_by(instance, certificate.method)
    with PauseGC():  # all of it stays; looking for garbage between would take as long
        model = _model(instance, formulation)
        program = program_of(model, certificate.claim, fine=bool(certificate.cuts), cutoff=certificate.cutoff)
    program = with_cuts(program, [])
    try:
        for _ in chain(derive(program, certificate.cuts), check_tree(program, certificate.nodes)):
            if expired():
                raise _given_up(time_limit)
    except RefutedError as problem:
        # Processors differ in the last digit of a coefficient that is a sum; a proof has more to spare than that.
        if model.digest == certificate.model_digest:
            raise
        raise SolutionError(
            f"the certificate is of another formulation than {certificate.method} of '{instance.name}' is in this "
            "version, of which it proves nothing; make it anew with `ddlopt certify`"
        ) from problem
    bound = bound_of(formulation, instance, model.maximised, certificate.claim)
    says = f"of the formulation {type(formulation).__name__} ({certificate.method}), its coefficients as they are built"
    if vipr is not None:
        told = (
            f"{instance.family}/{instance.name}, SHA-256 {instance.digest}",
            f"formulation of {certificate.method}, minimised{', with signs changed' if model.maximised else ''}",
            f"minimum and {model.offset} are at least {certificate.claim}; objective of the instance: {bound}",
        )
        write_whole_packed(vipr, vipr_text(program, certificate.nodes, told, certificate.cuts))
    return Proven("linear", bound, says, len(certificate.nodes))


def formulation_by(instance: Instance, method: str) -> Formulation:
    """The formulation of a method of ours or a relaxation, of all solutions of the instance, options as they are."""
    own = {entry.name for entry in catalogue.own_entries(instance.family) if entry.kind == "exact"}
    relaxations = problem_of(instance).relaxations
    if method not in own | set(relaxations):
        names = ", ".join(sorted(own | set(relaxations)))
        raise SolutionError(f"'{method}' is no exact method of {instance.family}; there are: {names}")
    formulation: Formulation | None
    if method in relaxations:
        formulation = relaxations[method]()
        reason = formulation.refuses(instance)
    else:
        chosen = catalogue.method(method, instance.family)
        reason = chosen.refuses(instance)
        formulation = None if reason else formulation_of(chosen, instance)
        # A method may cover more than its formulation does, by other means.
        reason = reason if formulation is None else formulation.refuses(instance)
    if formulation is None or reason:
        raise SolutionError(f"{method} has no formulation of '{instance.name}'" + (f": {reason}" if reason else ""))
    if formulation.scope(instance) is not None:
        raise SolutionError(f"{method} searches a smaller class of solutions: {formulation.scope(instance)}")
    return formulation


def _model(instance: Instance, formulation: Formulation) -> ExactModel:
    built = build_model(instance.family, formulation, instance)
    columns = sum(len(each) for each in built.component_objects(ctype=pyo.Var, active=True))
    if columns > _MOST_COLUMNS:
        raise NotApplicableError(f"the formulation has {columns} columns; {_MOST_COLUMNS} are proven at most")
    return exact_model(built)


def formulations(instance: Instance) -> Iterator[str]:
    """Exact methods with a formulation of the whole problem, each formulation once, and then its relaxations."""
    exact = [entry.name for entry in catalogue.own_entries(instance.family) if entry.kind == "exact"]
    seen = []
    for name in (*exact, *problem_of(instance).relaxations):
        try:
            found = formulation_by(instance, name)
        except (DdloptError, AttributeError):
            continue
        if found not in seen:
            seen.append(found)
            yield name


def prove(
    instance: Instance,
    solution: Solution,
    gap: float,
    time_limit: float | None,
    method: str | None = None,
    trees: bool = True,
) -> tuple[Certificate | None, bool]:
    """The best certificate for what a solution has, and whether it closes the gap.

    Parameters
    ----------
    method : str, optional
        ``combinatorial``, or a method whose formulation is to be taken; None tries one after the other.
    trees : bool
        Whether trees over formulations are looked for, too.
    """
    search = tree_prover()
    if search is None and method not in (None, COMBINATORIAL_METHOD):
        raise NotApplicableError("trees over formulations are written by ddlopt's frontier, which is hidden")
    end = None if time_limit is None else time.monotonic() + time_limit
    problem, sign = problem_of(instance), 1 if instance.sense == "minimize" else -1
    objective = problem.evaluate(instance, solution, exact=True).objective
    if objective is None:
        raise SolverError(f"the solution of '{instance.name}' fails the check")
    worth = Fraction(objective)
    target = worth - sign * Fraction(gap) * (1 - _SPARE) * abs(worth)
    best: tuple[Fraction, Certificate] | None = None
    combinatorial = method in (None, COMBINATORIAL_METHOD)
    known = _combinatorial_of(instance, asked=method is not None) if combinatorial else None
    kind = own_certificate(problem.path)
    own = prover(problem.path) if method is None and kind is not None else None
    witness = own is not None and kind is not None and kind.witness
    if known is not None:
        best = known.claim, known
        if sign * known.claim >= sign * target and not witness:
            return known, True
    if search is None or method == COMBINATORIAL_METHOD or not trees:
        names = []
    else:
        names = [method] if method else list(formulations(instance))
    if own is not None:
        # Some go on until they are told to end, and a tree is there for what they cannot prove.
        part = None if time_limit is None else time_limit / 2 if names else time_limit
        found: OwnCertificate | None = own(instance, solution, target, _expired(part))
        if found is not None and (
            best is None or sign * found.claim > sign * best[0] or (witness and found.claim == best[0])
        ):
            best = found.claim, found
        if best is not None and sign * best[0] >= sign * target:
            return best[1], True
    for place, name in enumerate(names):
        assert search is not None
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            break
        formulation = formulation_by(instance, name)
        try:
            with PauseGC():
                model = _model(instance, formulation)
            claim = _snapped(model, instance, formulation, worth, target)
            tree = search(model, claim, None if left is None else left / (len(names) - place))
        except NotApplicableError:
            if method is not None:
                raise
            continue
        if tree.claim is None:
            continue
        certificate = LinearCertificate(
            instance.name, instance.digest, name, model.digest, tree.claim, tree.nodes, tree.cuts, claim
        )
        try:
            bound = bound_of(formulation, instance, model.maximised, tree.claim)
        except NotApplicableError:
            continue
        if best is None or sign * bound > sign * best[0]:
            best = bound, certificate
        if tree.complete:
            break
    if best is None:
        return None, False
    return best[1], sign * best[0] >= sign * target


def _combinatorial_of(instance: Instance, asked: bool) -> CombinatorialCertificate | None:
    """What the combinatorial bound says; None where it is not exact, which is an error only if one was asked for."""
    exact_bound = exact_bound_of(path_of(instance))
    try:
        return exact_bound and CombinatorialCertificate(instance.name, instance.digest, exact_bound(instance))
    except NotApplicableError:
        if asked:
            raise
        return None


def _snapped(
    model: ExactModel, instance: Instance, formulation: Formulation, worth: Fraction, target: Fraction
) -> Fraction:
    """The claim for ``target``; where objectives are on a grid, that of the objective itself."""
    claim = claim_for(formulation, instance, model.maximised, target)
    step = step_of(model)
    if step is None:
        return claim
    sign = 1 if instance.sense == "minimize" else -1
    near = model.offset + -((model.offset - claim) // step) * step  # the next point of the grid
    return near if sign * bound_of(formulation, instance, model.maximised, near) <= sign * worth else claim
