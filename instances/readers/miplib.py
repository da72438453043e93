"""MIPLIB's logical topology designs, ``danoint`` and ``dano3mip`` (D. Bienstock), from their MPS files.

In both, rows OUTi and INi fix the degree of node i, and row BALij asks for the traffic from i to j; nodes are letters.
The other rows describe flows and congestion. Those named TOT in ``dano3mip`` demand more volume of a source than its
routes need, and exclude designs that an instance made from the file allows: bounds of the file are not its bounds.
"""

import re
from pathlib import Path

import numpy as np

from ddlopt.instances.readers.text_files import text_of
from ddlopt.models.errors import InstanceError
from ddlopt.models.topology import TopologyInstance

SUFFIXES = (".mps", ".mps.gz")
_SECTIONS = ("NAME", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "OBJSENSE", "OBJSENSE:", "OBJNAME")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?")
_SHOWN = 20
"""Characters of a word that a message shows."""


def read_miplib(path: str | Path) -> TopologyInstance:
    """The instance behind an MPS file of MIPLIB's ``danoint`` or ``dano3mip``.

    One unit of traffic is a byte and links are 1 byte/s, so that the iteration time is the file's objective. The file
    wants degrees equal to d and at most one link a pair; here a degree is at most d.

    Raises
    ------
    InstanceError
        If the file cannot be read or holds another model.
    """
    path = Path(path)
    right_hand_sides = _rows(path)
    degrees = {name: value for name, value in right_hand_sides.items() if re.fullmatch(r"(OUT|IN)[a-z]", name)}
    nodes = sorted(name[-1] for name in degrees if name.startswith("OUT"))
    if not nodes or {f"IN{node}" for node in nodes} | {f"OUT{node}" for node in nodes} != set(degrees):
        raise InstanceError(f"{path}: is no logical topology design: it needs rows OUTa, INa, … for every node")
    different = set(degrees.values())
    if len(different) > 1 or not float(next(iter(different))).is_integer():
        raise InstanceError(
            f"{path}: rows OUT and IN ask for degrees {sorted(different)}; all nodes need one and the same"
        )
    number = {node: place for place, node in enumerate(nodes)}
    traffic = np.zeros((len(nodes), len(nodes)))
    for name, value in right_hand_sides.items():
        if match := re.fullmatch(r"BAL([a-z])([a-z])", name):
            source, target = match.groups()
            if source not in number or target not in number:
                raise InstanceError(
                    f"{path}: row {name} names a node without rows OUT and IN; there are {''.join(nodes)}"
                )
            traffic[number[source], number[target]] = value
    name = path.name.removesuffix(".gz").removesuffix(".mps")
    return TopologyInstance.from_data(
        {
            "name": name,
            "source": f"MIPLIB, {path.name} (D. Bienstock): logical topology design; its degrees are equalities",
            "servers": len(nodes),
            "degree": int(next(iter(different))),
            "link_bandwidth_bytes_per_s": 1.0,
            "parallel_links": False,
            "traffic_bytes": traffic,
        },
        str(path),
    )


def _rows(path: Path) -> dict[str, float]:
    """Right-hand sides of the equality rows, by name, from the sections ROWS and RHS alone.

    HiGHS, which reads MPS well, does not return from some files that were damaged, and unpacks without a limit.
    """
    if not path.name.endswith(SUFFIXES):
        raise InstanceError(f"{path}: an MPS file has a name that ends in {' or '.join(SUFFIXES)}")
    section = ""
    sides: dict[str, float] = {}
    kinds: dict[str, str] = {}
    for number, line in enumerate(text_of(path).split("\n"), 1):
        words = line.split()
        if not words or line.startswith("*"):
            continue
        if not line[0].isspace():
            section = words[0]
            if section == "ENDATA":
                return {name: sides.get(name, 0.0) for name, kind in kinds.items() if kind == "E"}
            if section not in _SECTIONS:
                raise InstanceError(
                    f"{path}: line {number} begins with '{section[:_SHOWN]}', which is no section of MPS"
                )
        elif section == "ROWS":
            if len(words) != 2 or words[0] not in ("N", "E", "L", "G") or words[1] in kinds:
                raise InstanceError(f"{path}: line {number} is no row with a kind and a name of its own")
            kinds[words[1]] = words[0]
        elif section == "RHS":
            pairs = words[1:] if len(words) % 2 else words  # the name of the right-hand side may be missing
            for name, text in zip(pairs[::2], pairs[1::2], strict=True):
                if name not in kinds or name in sides or not _NUMBER.fullmatch(text):
                    raise InstanceError(f"{path}: line {number} gives no row a number, or one a second time")
                sides[name] = float(text)
    raise InstanceError(f"{path}: is truncated, or no MPS file: it has no ENDATA")
