"""What the readers of places share: gangs in words, hosts in brackets, and levels with one domain only."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ddlopt.instances.readers.text_files import name_of
from ddlopt.models.cluster.placement.instance import ANYWHERE, MOST_HOSTS, PlacementInstance
from ddlopt.models.errors import InstanceError, OptionError

_GANG = re.compile(r"(?:([0-9]{1,6})x)?([0-9]{1,7})(?::(.+))?")
_PIECE = re.compile(r"([^\[\],]*)\[([^\[\]]*)\]|([^\[\],]+)|(,)")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_MOST_GANGS = 100_000
"""More is a slip of the pen."""


def gangs_of(text: str, levels: Sequence[str]) -> list[dict[str, Any]]:
    """Gangs in words, with commas: ``8``, ``3x8`` (three of them), ``4:rack`` (within a level).

    Raises
    ------
    OptionError
        If a word says something else, or of an unknown level.
    """
    found: list[dict[str, Any]] = []
    for word in text.split(","):
        match = _GANG.fullmatch(word.strip())
        if match is None:
            raise OptionError(
                f"gangs has {word.strip()!r}; say 8, or 3x8 for three gangs, or 4:rack for one within a rack"
            )
        count, hosts, within = match.groups()
        if int(count or 1) + len(found) > _MOST_GANGS:
            raise OptionError(f"gangs are more than {_MOST_GANGS}; give fewer")
        level = ANYWHERE if within is None else level_of(within, levels)
        found += [
            {"name": f"g{len(found) + number}", "hosts": int(hosts), "within": level}
            for number in range(int(count or 1))
        ]
    return found


def level_of(word: str, levels: Sequence[str]) -> str:
    """The level that a word names, or that alone ends in it.

    Raises
    ------
    OptionError
        If there is none, or several.
    """
    if word in (ANYWHERE, *levels):
        return word
    ending = [level for level in levels if level.endswith(word)]
    if len(ending) != 1:
        raise OptionError(f"there is no level '{word}'; levels are: {', '.join(levels)}")
    return ending[0]


def hosts_of(where: str, text: str) -> list[str]:
    """Names of Slurm's hostlists: ``tux[0-3,12],login1``; numbers keep their zeros.

    Raises
    ------
    InstanceError
        If brackets or ranges are none.
    """
    found, piece, at, prefix = list[str](), [""], 0, False
    for match in _PIECE.finditer(text):
        if match.start() != at:
            break
        at = match.end()
        before, ranges, plain, comma = match.groups()
        if comma:
            found, piece, prefix = found + piece * prefix, [""], False
            continue
        prefix = True
        ends = [plain] if plain is not None else [before + number for number in _numbers(where, ranges)]
        if len(found) + len(piece) * len(ends) > MOST_HOSTS:
            raise InstanceError(f"{where}: '{_short(text)}' names more than {MOST_HOSTS} hosts")
        piece = [begun + end for begun in piece for end in ends]
    if at != len(text) or not text:
        raise InstanceError(f"{where}: '{_short(text)}' is no list of hosts such as tux[0-3,12],login1")
    return [name.strip() for name in found + piece * prefix]


def _numbers(where: str, ranges: str) -> list[str]:
    found: list[str] = []
    for each in ranges.split(","):
        match = _RANGE.fullmatch(each.strip())
        if match is None:
            raise InstanceError(f"{where}: '[{_short(ranges)}]' is no range of numbers such as [0-3,12]")
        first, last = match.group(1), match.group(2) or match.group(1)
        if int(last) < int(first):
            raise InstanceError(f"{where}: '[{_short(ranges)}]' goes from {first} down to {last}")
        if int(last) - int(first) + len(found) >= MOST_HOSTS:
            raise InstanceError(f"{where}: '[{_short(ranges)}]' names more than {MOST_HOSTS} hosts")
        found += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return found


def instance_of(
    path: Path,
    levels: Sequence[str],
    places: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    gangs: str | int | list[dict[str, Any]],
    source: str,
    options: Mapping[str, Any],
) -> PlacementInstance:
    """An instance whose leaves are ``places``: by name, what is around each, and the names of its hosts.

    Outer levels that have one domain only are left out, as nothing depends on them. ``options`` are ``busy``, a
    hostlist of hosts that are not free, ``objective``, and ``name``.

    Raises
    ------
    InstanceError
        If the places make no instance, or a busy host is not there.
    OptionError
        If the gangs are not understood.
    """
    every, levels = list(levels), list(levels)
    places = {name: (list(around), list(hosts)) for name, (around, hosts) in places.items()}
    while len(levels) > 1 and len({tuple(around[:1]) for around, _ in places.values()}) <= 1:
        levels, places = levels[1:], {name: (around[1:], hosts) for name, (around, hosts) in places.items()}
    taken = set(hosts_of("busy", options["busy"])) if options.get("busy") else set()
    known = {host for _, hosts in places.values() for host in hosts}
    if missing := sorted(taken - known):
        raise OptionError(f"busy names host '{missing[0]}', which {path.name} does not have")
    if isinstance(gangs, str | int):
        gangs = gangs_of(str(gangs), every)
    # Every place is in the one domain of a level that is left out.
    gangs = [{**gang, "within": gang["within"] if gang["within"] in levels else ANYWHERE} for gang in gangs]
    leaves = []
    for name, (around, hosts) in places.items():
        free = [host for host in hosts if host not in taken]
        leaves.append({"name": name, "inside": around, "hosts": len(free), "host_names": free})
    busy = f"; {len(taken)} hosts are busy" if taken else ""
    return PlacementInstance.from_data(
        {
            "name": options.get("name") or name_of(path),
            "source": f"{path.name}, {source}{busy}",
            "levels": levels,
            "leaves": leaves,
            "gangs": gangs,
            "objective": options["objective"],
        },
        str(path),
    )


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
