"""MIPLIB's logical topology designs, ``danoint`` and ``dano3mip`` (D. Bienstock), from their MPS files.

In both, rows OUTi and INi fix the degree of node i, and row BALij asks for the traffic from i to j; nodes are letters.
The other rows describe flows and congestion. Those named TOT in ``dano3mip`` demand more volume of a source than its
routes need, and exclude designs that an instance made from the file allows: bounds of the file are not its bounds.
"""

import re
from pathlib import Path

import highspy
import numpy as np

from ddlopt.models.errors import InstanceError
from ddlopt.models.topology import TopologyInstance

SUFFIXES = (".mps", ".mps.gz")


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
    """Right-hand sides of the equality rows, by name; HiGHS reads the file."""
    if not path.name.endswith(SUFFIXES):
        raise InstanceError(f"{path}: an MPS file has a name that ends in {' or '.join(SUFFIXES)}")
    if not path.is_file():
        raise InstanceError(f"{path}: cannot be read: {'is a folder' if path.is_dir() else 'no such file'}")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    if highs.readModel(str(path)) != highspy.HighsStatus.kOk:
        raise InstanceError(f"{path}: HiGHS cannot read it as an MPS file; it may be truncated or something else")
    model = highs.getLp()
    sides = zip(model.row_names_, model.row_lower_, model.row_upper_, strict=True)
    return {name: lower for name, lower, upper in sides if lower == upper}
