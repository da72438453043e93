"""What went wrong, as one line, and the exit code that goes with it."""

import contextlib
import errno
import os
import sys

from ddlopt.cli.shared.arguments import BAD_INPUT, NO_ANSWER

_NO_FILE = (errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOTDIR, errno.EROFS)
"""What is wrong with names that were given, wherever it shows."""


def explain(problem: Exception) -> tuple[str, int]:
    """The line and the exit code."""
    from ddlopt.models.errors import DdloptError, RefutedError, SolverError, SolverMissingError

    if hasattr(problem, "format_message"):  # a usage error of Typer, whichever Click it carries
        context = getattr(problem, "ctx", None)
        command = "ddlopt" if context is None else context.command_path
        return f"{problem.format_message()} (see {command} --help)", BAD_INPUT
    if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        with contextlib.suppress(OSError):  # what is left to be written would fail once more on the way out
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return f"nothing more can be written: {problem.strerror}", NO_ANSWER
    if isinstance(problem, OSError) and problem.errno in _NO_FILE:
        return f"'{problem.filename}' is no file that can be opened: {problem.strerror}", BAD_INPUT
    if isinstance(problem, DdloptError):
        failed = isinstance(problem, SolverError | RefutedError) and not isinstance(problem, SolverMissingError)
        return str(problem), NO_ANSWER if failed else BAD_INPUT
    if isinstance(problem, MemoryError):
        return "there is not enough memory for that; give smaller sizes or a smaller file", NO_ANSWER
    what = f"internal error: {type(problem).__name__}: {problem}"
    return f"{what} (please report it; DDLOPT_TRACEBACK=1 shows where)", NO_ANSWER
