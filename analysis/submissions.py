"""What somebody hands in: a solution, a proof of a bound, or both, in one file with who found it and how.

Anybody can judge such a file (``ddlopt check``); in a checkout of the library :func:`take` keeps what is better than
what the library has.
"""

import base64
import binascii
import datetime
import gzip
import hashlib
import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from ddlopt import instances
from ddlopt.analysis.certify import check_certificate
from ddlopt.analysis.records import News, offer
from ddlopt.instances.index import PROVEN
from ddlopt.instances.library import certificates
from ddlopt.instances.library.records import Run
from ddlopt.instances.submission_format import FORMAT
from ddlopt.models.catalogue import family, problem_of, solution_of
from ddlopt.models.contracts import Evaluation, Instance, Part, Solution
from ddlopt.models.errors import OptionError, RefutedError, SolutionError
from ddlopt.models.files import write_whole
from ddlopt.models.reading import UnreadableError, is_fraction, parsed, read_text
from ddlopt.models.refusals import one_line
from ddlopt.solvers.contracts import relative_gap
from ddlopt.solvers.proofs import Proven

LICENCES = ("Apache-2.0", "CC0-1.0", "CC-BY-4.0", "MIT", "BSD-3-Clause")
"""SPDX identifiers of the licences under which the library takes data."""
_LARGEST_CERTIFICATE_BYTES = 200_000
"""Of one that is kept in the library; of a larger one the bound is kept, and the file that was handed in."""


class Submission(Part):
    """A file that is handed in.

    Parameters
    ----------
    instance, instance_digest : str
        What it answers: a bundled instance, with the data that it has.
    method, author : str
        How the solution or the bound was found, and by whom.
    licence : str
        One of :data:`LICENCES`.
    date : date
        Day on which the file was made.
    objective : str, optional
        Of the solution, as a fraction.
    solution : dict, optional
        As ``ddlopt solve --out`` writes it.
    bound : str, optional
        On the objective of every solution, as a fraction.
    certificate : str, optional
        The proof of ``bound``: the bytes of a file of ``ddlopt certify``, in base 64.
    """

    format: Literal["ddlopt submission"] = FORMAT
    version: Literal[1] = 1
    instance: str
    instance_digest: str
    method: str = Field(min_length=1, max_length=200)
    author: str = Field(min_length=1, max_length=200)
    licence: str
    date: datetime.date
    objective: str | None = None
    solution: dict[str, Any] | None = None
    bound: str | None = None
    certificate: str | None = None

    @field_validator("method", "author")
    @classmethod
    def _is_a_line(cls, text: str) -> str:
        if not text.strip() or not text.isprintable():
            raise ValueError("expected a line of text")
        return text

    @field_validator("licence")
    @classmethod
    def _is_known(cls, licence: str) -> str:
        if licence not in LICENCES:
            raise ValueError(f"use one of: {', '.join(LICENCES)}")
        return licence

    @field_validator("objective", "bound")
    @classmethod
    def _is_a_fraction(cls, text: str | None) -> str | None:
        if text is not None and not is_fraction(text):
            raise ValueError("expected a fraction like 17/3")
        return text

    @model_validator(mode="after")
    def _is_whole(self) -> "Submission":
        if self.solution is None and self.certificate is None:
            raise ValueError("there is neither a solution nor a certificate")
        if (self.solution is None) != (self.objective is None):
            raise ValueError("solution and objective: give both or neither")
        if (self.certificate is None) != (self.bound is None):
            raise ValueError("bound and certificate: give both or neither, as a bound counts with its proof only")
        return self

    @property
    def run(self) -> Run:
        """As a record says it."""
        return Run(method=self.method, date=self.date, author=self.author, licence=self.licence)

    @property
    def text(self) -> str:
        """The file's content."""
        return json.dumps(self.model_dump(mode="json", exclude_none=True), indent=1, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class Judged:
    """What the check says of a submission, in exact arithmetic.

    Parameters
    ----------
    evaluation : Evaluation, optional
        Of the solution.
    bound : Fraction, optional
        That the certificate proves.
    kind : str, optional
        Of the certificate.
    nodes : int
        Of its tree.
    faults : tuple of str
        Why it is not to be taken; none where everything in it holds.
    """

    evaluation: Evaluation | None
    bound: Fraction | None
    kind: str | None
    nodes: int
    faults: tuple[str, ...]


def made(
    name: str,
    solution: Solution | str | Path | None,
    certificate: str | Path | None = None,
    *,
    method: str,
    author: str,
    licence: str,
) -> Submission:
    """A submission for a bundled instance, judged before it is handed over.

    Raises
    ------
    UnknownNameError
        If the library has no such instance.
    SolutionError
        If the solution is not feasible, or cannot be read.
    RefutedError
        If the certificate proves nothing.
    OptionError
        If a field is missing or is not of its kind.
    """
    full = instances.full_name(name)
    instance = instances.load(full)
    fields: dict[str, Any] = {"instance": full, "instance_digest": instance.digest}
    fields |= {"method": method, "author": author, "licence": licence}
    fields["date"] = datetime.datetime.now(datetime.UTC).date()
    if solution is not None:
        found = solution_of(instance, solution)
        judged = family(instance.family).evaluate(instance, found, exact=True)
        if not judged.feasible:
            told = "; ".join(map(str, judged.violations[:3]))
            raise SolutionError(f"'{full}': the solution is not feasible: {told}")
        fields |= {"objective": str(Fraction(judged.objective)), "solution": found.model_dump(mode="json")}  # type: ignore[arg-type]
    if certificate is not None:
        bound, *_ = _proven(instance, certificate)
        data = _bytes_of(certificate)
        fields |= {"bound": str(bound), "certificate": base64.b64encode(data).decode()}
    try:
        return Submission.model_validate(fields)
    except ValidationError as problem:
        raise OptionError(one_line(problem, "submission", {}, "")) from None


def read(path: str | Path) -> Submission:
    """A submission from its file.

    Raises
    ------
    SolutionError
        If it cannot be read or is none.
    """
    try:
        data = parsed(read_text(path))
        return Submission.model_validate(data)
    except UnreadableError as problem:
        raise SolutionError(f"{path}: cannot be read: {problem}") from None
    except ValidationError as problem:
        raise SolutionError(one_line(problem, "submission", {}, str(path))) from None
    except (ValueError, RecursionError) as problem:
        raise SolutionError(f"{path}: not valid JSON: {problem}") from None


def judge(submission: Submission, instance: Instance | None = None) -> Judged:
    """Everything that a submission says, checked anew: feasibility, objective, and the proof of the bound.

    Parameters
    ----------
    submission : Submission
    instance : Instance, optional
        The bundled one by default.

    Raises
    ------
    UnknownNameError
        If the library has no such instance.
    SolutionError
        If it is for other data, or the solution cannot be read.
    """
    if instance is None:
        instance = instances.load(instances.full_name(submission.instance))
    if instance.digest != submission.instance_digest:
        raise SolutionError(
            f"the submission is for '{submission.instance}' (digest {submission.instance_digest[:12]}…), "
            f"not for '{instance.name}' (digest {instance.digest[:12]}…)"
        )
    faults: list[str] = []
    evaluation = bound = kind = None
    nodes = 0
    if submission.solution is not None:
        evaluation = problem_of(instance).evaluate(instance, _solution(submission, instance), exact=True)
        if not evaluation.feasible:
            faults.append("the solution is not feasible: " + "; ".join(map(str, evaluation.violations[:3])))
        elif Fraction(evaluation.objective) != Fraction(submission.objective):  # type: ignore[arg-type]
            faults.append(f"the objective is {evaluation.objective}, not {submission.objective}")
    if submission.certificate is not None:
        try:
            bound, kind, nodes = _proven_text(instance, submission.certificate)
        except RefutedError as refutation:
            faults.append(f"the certificate does not hold: {refutation}")
        if bound is not None and bound != Fraction(submission.bound):  # type: ignore[arg-type]
            faults.append(f"the certificate proves {bound}, not {submission.bound}")
    if evaluation is not None and evaluation.feasible and bound is not None:
        sign = 1 if instance.sense == "minimize" else -1
        if sign * (Fraction(evaluation.objective) - bound) < 0:  # type: ignore[arg-type]
            faults.append(
                "the solution is better than the bound: one of the two checks is wrong, please report the file"
            )
    return Judged(evaluation, bound, kind, nodes, tuple(faults))


def take(submission: Submission) -> Iterator[News]:
    """Keep what is better than what the library has, in a checkout of it, and tell what is new.

    Raises
    ------
    SolutionError
        If something in it does not hold.
    UnknownNameError
        If the library has no such instance.
    """
    full = instances.full_name(submission.instance)
    instance = instances.load(full)
    judged = judge(submission, instance)
    if judged.faults:
        raise SolutionError(f"{full}: {judged.faults[0]}")
    solution = None if submission.solution is None else (_solution(submission, instance), submission.run)
    bound = None if judged.bound is None else (_rounded(judged.bound, instance), submission.run)
    yield from offer(full, instance, solution, bound)
    if submission.certificate is not None and _keep_certificate(full, instance, submission, judged):
        yield News(f"{full}: the certificate is kept")


def _solution(submission: Submission, instance: Instance) -> Solution:
    found = family(instance.family).solution.from_data(submission.solution, f"submission for '{submission.instance}'")
    found.belongs_to(instance)
    return found


def _bytes_of(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        raise SolutionError(f"{path}: cannot be read: {problem.strerror or problem}") from None


def _proven(instance: Instance, path: str | Path) -> tuple[Fraction, str, int]:
    """What a file proves, the kind of the proof, and how many nodes its tree has."""
    checked = check_certificate(instance, path)
    return Fraction(checked.bound), checked.kind if isinstance(checked, Proven) else "design", checked.nodes


def _proven_text(instance: Instance, text: str) -> tuple[Fraction, str, int]:
    """The same of a file in base 64."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as problem:
        raise SolutionError(f"certificate: is not in base 64: {problem}") from None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "certificate"
        file.write_bytes(data)
        return _proven(instance, file)


def _rounded(bound: Fraction, instance: Instance) -> float:
    """The nearest float that is a bound, too."""
    near = float(bound)
    if instance.sense == "minimize":
        return near if Fraction(near) <= bound else math.nextafter(near, -math.inf)
    return near if Fraction(near) >= bound else math.nextafter(near, math.inf)


def _keep_certificate(full: str, instance: Instance, submission: Submission, judged: Judged) -> bool:
    """Keep a small certificate that closes an instance without one; whether it was kept."""
    known, entry = instances.record(full), certificates.entries().get(full)
    if known is None or known.found is None or judged.bound is None or submission.certificate is None:
        return False
    gap = relative_gap(known.found.objective, _rounded(judged.bound, instance), instance.sense)
    if gap is None or gap > PROVEN or (entry is not None and entry["evidence"] != "solver"):
        return False
    path = certificates.path_of(full, judged.kind == "design")
    data = base64.b64decode(submission.certificate)
    data = data if data[:2] == b"\x1f\x8b" else gzip.compress(data, mtime=0)
    if len(data) <= _LARGEST_CERTIFICATE_BYTES:
        write_whole(path, data)
    evidence = "combinatorial" if judged.kind == "combinatorial" else "certificate"
    row = {"instance_digest": instance.digest, "limit_s": 0.0, "day": submission.date.isoformat()}
    row |= {"evidence": evidence, "kind": judged.kind, "method": submission.method, "gap": gap, "nodes": judged.nodes}
    row |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    certificates.write_entries(certificates.entries() | {full: row})
    return True
