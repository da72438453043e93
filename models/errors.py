"""The exceptions that ddlopt raises on purpose; each is also the fitting built-in."""


def plain(text: str) -> str:
    """The text with what could steer a terminal, or is no character, written as an escape; line feeds become spaces."""
    if text.isprintable():
        return text
    spaced = text.replace("\n", " ")
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape", "backslashreplace").decode() for each in spaced
    )


def plain_lines(text: str) -> str:
    """The same of several lines, which stay apart."""
    return text if text.isprintable() else "\n".join(map(plain, text.split("\n")))


def a_or_an(noun: str) -> str:
    """The noun with its article."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


# What a file of another kind says of itself (a header of 100 000 letters) would bury what to mend, at either end.
_LONGEST = 2000
_KEPT = _LONGEST // 2


class DdloptError(Exception):
    """Anything that ddlopt raises on purpose; its message is one line that says what to mend."""

    def __str__(self) -> str:
        text = super().__str__()
        return plain(text if len(text) <= _LONGEST else f"{text[:_KEPT]}…{text[-_KEPT:]}")


class InstanceError(DdloptError, ValueError):
    """Data that cannot be an instance: the message names the field, the index, both values and the fix."""


class SolutionError(DdloptError, ValueError):
    """Data that cannot be a solution of the instance it is offered for."""


class RefutedError(SolutionError):
    """A proof that can be read, of this instance, and proves nothing."""


class UnknownNameError(DdloptError, LookupError):
    """An instance, method, family or solver that does not exist; the message lists what does."""


class NotApplicableError(DdloptError, ValueError):
    """A method or formulation that does not cover the instance; the message says which property is in the way."""


class OptionError(DdloptError, ValueError):
    """A limit, seed or other option out of its range."""


class SolverError(DdloptError, RuntimeError):
    """A solver is missing, failed, or claimed something that the independent check refuted."""


class RangeError(SolverError, NotApplicableError):
    """Figures too far apart for a model in floating point; the message says where."""


class ContradictionError(SolverError):
    """Two things that cannot both be true: a bound on the wrong side of a checked solution; the message names both."""


class SolverMissingError(SolverError, UnknownNameError):
    """A solver that ddlopt knows but that is not installed; the message says how to install it."""


class NoSolutionError(SolverError):
    """A heuristic found no feasible solution; whether there is one is open."""


class InfeasibleError(SolverError):
    """The problem has no solution, and that is proven."""


class StoreError(DdloptError, OSError):
    """A store of results that cannot be used: no store, of a newer version, damaged, or in use."""
