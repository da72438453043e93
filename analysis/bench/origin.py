"""Where results come from: the machine, and the commit of the source where there is one."""

import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

# Git answers at once; on a network drive that hangs a sweep goes on without it.
_GIT_S = 10


@cache
def machine() -> dict[str, Any]:
    """The machine of this process: ``cpu``, ``cores``, ``memory_bytes`` and ``system``."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "system": platform.platform(),
    }


def _cpu() -> str:
    """The processor by name; by kind where the system does not tell its name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


@cache
def revision(source: Path = Path(__file__)) -> str | None:
    """The commit of the source that runs, ``-dirty`` after it where files were changed since.

    Parameters
    ----------
    source : Path
        A file of it.

    Returns
    -------
    str or None
        None for an installed package, even if it lies inside of another project's checkout, and without git.
    """
    source = source.resolve()
    if _git(source, "ls-files", "--error-unmatch", source.name) is None:
        return None
    commit = _git(source, "rev-parse", "HEAD")
    # `describe --dirty` would lock the checkout, and leave it locked where it is killed.
    changed = _git(source, "status", "--porcelain", "--untracked-files=no")
    return None if commit is None or changed is None else commit + ("-dirty" if changed else "")


def _git(source: Path, *words: str) -> str | None:
    """What git says in the folder of a file; None if it fails."""
    command = ["git", "--no-optional-locks", "-C", str(source.parent), *words]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.strip()
