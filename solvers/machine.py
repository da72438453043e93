"""How much memory there is, and how much of it this process has."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

_STATM = Path("/proc/self/statm")
_GROUPS = Path("/sys/fs/cgroup")
# Of each version of control groups: folder, limit, use, and what of the use the system takes back when it has to.
_FILES = {
    "v2": ("", "memory.max", "memory.current", "inactive_file"),
    "v1": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
_UNUSED_BYTES = 2 * 2**30
"""Address space that libraries and threads reserve and never use."""
_PART = 0.95
"""Of what there is; the rest is for what else goes on."""


def address_space_bytes() -> int:
    """Address space that this process has now; 0 where that is not known."""
    try:
        return int(_STATM.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def memory_bytes() -> int:
    """Memory that this process has now, or, where that is not known, the most that it had."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource  # which not every system has

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def memory_left_bytes(root: Path = Path("/")) -> int | None:
    """Memory that the machine, and every control group that this process is in, has left; None if nobody says.

    Parameters
    ----------
    root : Path
        Of the files that say so.
    """
    return min(_left(root), default=None)


def address_space_left_bytes() -> int | None:
    """Address space with which this process cannot take more memory than there is; None if nobody says how much."""
    left = memory_left_bytes()
    return None if left is None else address_space_bytes() + int(_PART * left)


def hold_memory() -> None:
    """Limit the address space of this process, and of those that it starts, to what the machine has left.

    On Linux; libraries and threads take some that is never used, for which :data:`_UNUSED_BYTES` are added.
    """
    left = address_space_left_bytes() if sys.platform == "linux" else None
    if left is None:
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = left + _UNUSED_BYTES
    if hard == resource.RLIM_INFINITY or wanted < hard:
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def _left(root: Path) -> Iterator[int]:
    for line in _lines(root / "proc/meminfo"):
        name, _, figure = line.partition(":")
        if name == "MemAvailable":
            yield int(figure.split()[0]) * 1024
    for line in _lines(root / "proc/self/cgroup"):
        number, controllers, place = line.split(":", 2)
        if number == "0" or "memory" in controllers.split(","):
            yield from _left_in_group(root, place, "v2" if number == "0" else "v1")


def _left_in_group(root: Path, place: str, version: str) -> Iterator[int]:
    """What a group and those above it have left; in a container the group may be mounted as if it were the root."""
    top, limit, use, reclaimed = _FILES[version]
    base = root / _GROUPS.relative_to("/") / top
    parts = [part for part in place.split("/") if part not in ("", "..")]
    for count in range(len(parts), -1, -1):
        group = base.joinpath(*parts[:count])
        most, used = _number(group / limit), _number(group / use)
        if most is None or used is None:
            continue
        back = [int(words[1]) for words in map(str.split, _lines(group / "memory.stat")) if words[0] == reclaimed]
        yield max(0, most - used + sum(back))


def _number(file: Path) -> int | None:
    """The number in a file; None where there is none, which is ``max`` for no limit."""
    words = _lines(file)
    return int(words[0]) if words and words[0].isdigit() else None


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
