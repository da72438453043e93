"""Slurm's ``topology.conf`` and ``topology.yaml``: switches as a tree, or blocks in a row."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ddlopt.instances.options import checked
from ddlopt.instances.readers.places.common import hosts_of, instance_of
from ddlopt.instances.readers.places.yaml_text import documents_of
from ddlopt.instances.readers.text_files import text_of
from ddlopt.models.cluster.placement.instance import PlacementInstance
from ddlopt.models.errors import InstanceError, OptionError

_WORDS = {"switchname", "switches", "nodes", "linkspeed", "blockname", "blocksizes"}
_PAIR = re.compile(r"([A-Za-z]+)\s*=\s*(\S+)")


class _Switch(NamedTuple):
    """A switch or block as it stands in the file: where, its name, its nodes, its switches below."""

    where: str
    name: str
    nodes: list[str]
    below: list[str]


@checked
def read_slurm_topology(
    path: str | Path,
    *,
    gangs: str | int = "1",
    busy: str | None = None,
    objective: str = "pairs",
    topology: str | None = None,
    name: str | None = None,
) -> PlacementInstance:
    """Leaf switches or blocks as leaves; levels around them are ``level-1`` (just around), ``level-2`` and so on.

    A leaf switch that is nearer to the root than others is put into levels of its own. Blocks of ``BlockSizes`` are as
    many base blocks one after the other as the sizes are apart. Outer levels of one domain are left out.

    Parameters
    ----------
    path : str or Path
        ``.yaml`` or ``.yml`` for YAML; anything else is read as ``topology.conf``.
    gangs : str or int
        Such as ``3x8,4:leaf``: three gangs of 8 hosts anywhere, one of 4 within a leaf.
    busy : str, optional
        A hostlist: ``node[01-04],node09``.
    objective : {"pairs", "crossings", "max_gangs", "fits"}
        What is optimized.
    topology : str, optional
        Of those in a YAML file; None: the default one, or the only one.
    name : str, optional
        None: the file's.

    Raises
    ------
    InstanceError
        If the file cannot be read, is none of these, or switches do not nest.
    OptionError
        If an option is not understood.
    """
    path = Path(path)
    if path.suffix in (".yaml", ".yml"):
        switches, sizes = _from_yaml(path, topology)
    else:
        if topology is not None:
            raise OptionError("topology names one of several in a topology.yaml; a topology.conf has one")
        switches, sizes = _from_conf(path)
    if not switches:
        raise InstanceError(f"{path}: names no switch and no block")
    seen: dict[str, str] = {}
    for switch in switches:
        if switch.name in seen:
            raise InstanceError(f"{switch.where}: '{switch.name}' is there already, in {seen[switch.name]}")
        seen[switch.name] = switch.where
        if bool(switch.nodes) == bool(switch.below):
            raise InstanceError(f"{switch.where}: '{switch.name}' needs either nodes or switches below it")
    levels, around = _of_tree(switches) if sizes is None else _of_blocks(path, switches, sizes)
    places = {switch.name: (around[switch.name], switch.nodes) for switch in switches if switch.nodes}
    source = f"a topology of Slurm with {len(places)} {'leaf switches' if sizes is None else 'blocks'}"
    return instance_of(path, levels, places, gangs, source, {"busy": busy, "objective": objective, "name": name})


def _from_conf(path: Path) -> tuple[list[_Switch], list[int] | None]:
    found, sizes, blocks = list[_Switch](), list[int](), False
    for number, line in enumerate(text_of(path).replace("\\\n", " ").split("\n"), start=1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        where = f"{path}: line {number}"
        pairs = {key.lower(): value for key, value in _PAIR.findall(line)}
        rest = _PAIR.sub("", line).strip()
        if rest or not pairs or pairs.keys() - _WORDS:
            odd = rest or next(iter(pairs.keys() - _WORDS), line)
            raise InstanceError(f"{where}: '{odd[:60]}' is none of SwitchName, Switches, Nodes, BlockName, BlockSizes")
        if "blocksizes" in pairs:
            sizes += [_size(where, each) for each in pairs["blocksizes"].split(",")]
            continue
        own = pairs.get("switchname") or pairs.get("blockname")
        if own is None:
            raise InstanceError(f"{where}: has neither SwitchName nor BlockName")
        blocks |= "blockname" in pairs
        found.append(
            _Switch(where, own, *(hosts_of(where, pairs[key]) if key in pairs else [] for key in ("nodes", "switches")))
        )
    return found, sizes if blocks else None


def _from_yaml(path: Path, wanted: str | None) -> tuple[list[_Switch], list[int] | None]:
    listed = [
        each for document in documents_of(path) for each in (document if isinstance(document, list) else [document])
    ]
    named = {str(each["topology"]): each for each in listed if isinstance(each, Mapping) and "topology" in each}
    if not named or len(named) != len(listed):
        raise InstanceError(f"{path}: expected a list of topologies, each with a name of its own as `topology`")
    if wanted is not None and wanted not in named:
        raise OptionError(f"topology is '{wanted}'; {path.name} has: {', '.join(named)}")
    default = [name for name, each in named.items() if str(each.get("cluster_default", "")).lower() in ("true", "yes")]
    own = named[wanted or next(iter([*default, *named]))]
    where = f"{path}: topology '{own['topology']}'"
    for kind, plural, single in (("tree", "switches", "switch"), ("block", "blocks", "block")):
        if kind in own:
            rows = own[kind].get(plural) if isinstance(own[kind], Mapping) else None
            if not isinstance(rows, list) or not rows:
                raise InstanceError(f"{where}: {kind} has no list of {plural}")
            found = list(_rows(where, rows, plural, single))
            if kind == "tree":
                return found, None
            sizes = own[kind].get("block_sizes", [])
            return found, [_size(where, each) for each in (sizes if isinstance(sizes, list) else [sizes])]
    raise InstanceError(f"{where}: has neither a tree nor blocks")


def _rows(where: str, rows: list[Any], plural: str, single: str) -> Iterator[_Switch]:
    for number, row in enumerate(rows):
        at = f"{where}: {plural}[{number}]"
        if not isinstance(row, Mapping) or not isinstance(row.get(single), str):
            raise InstanceError(f"{at}: has no name as `{single}`")
        texts = [row.get(key) for key in ("nodes", "children")]
        if not all(text is None or isinstance(text, str) for text in texts):
            raise InstanceError(f"{at}: nodes and children are texts such as node[01-04]")
        yield _Switch(at, row[single], *(hosts_of(at, text) if text else [] for text in texts))


def _size(where: str, text: Any) -> int:
    if not isinstance(text, str) or not text.strip().isdecimal() or not 0 < int(text) < 10**7:
        raise InstanceError(f"{where}: a block size is {text!r:.40}; sizes are whole numbers of nodes")
    return int(text)


def _of_tree(switches: list[_Switch]) -> tuple[list[str], dict[str, list[str]]]:
    """Names of levels, and of the domains around each leaf switch."""
    parent: dict[str, _Switch] = {}
    known = {switch.name for switch in switches}
    for switch in switches:
        for child in switch.below:
            if child not in known:
                raise InstanceError(f"{switch.where}: there is no switch '{child}'")
            if child in parent:
                raise InstanceError(
                    f"{switch.where}: levels do not nest: '{child}' is below '{switch.name}' and below "
                    f"'{parent[child].name}' ({parent[child].where})"
                )
            parent[child] = switch
    around: dict[str, list[str]] = {}
    for switch in switches:
        if switch.nodes:
            path, above = list[str](), parent.get(switch.name)
            while above is not None:
                if above.name in path:
                    raise InstanceError(f"{above.where}: levels do not nest: '{above.name}' is below itself")
                path.insert(0, above.name)
                above = parent.get(above.name)
            around[switch.name] = path
    if not around:
        raise InstanceError(f"{switches[0].where}: levels do not nest: no switch has nodes, some are below themselves")
    depth = max(map(len, around.values()))
    # Names of switches differ, so that the own one may stand for the levels that are missing.
    padded = {name: path + [name] * (depth - len(path)) for name, path in around.items()}
    return [*(f"level-{depth - place}" for place in range(depth)), "leaf"], padded


def _of_blocks(path: Path, blocks: list[_Switch], sizes: list[int]) -> tuple[list[str], dict[str, list[str]]]:
    """The same of blocks: larger ones are base blocks one after the other."""
    base = sizes[0] if sizes else 1
    widths: list[int] = []
    for size in sizes[1:]:
        width, rest = divmod(size, base)
        if rest or width & (width - 1) or width <= (widths[-1] if widths else 1):
            raise InstanceError(
                f"{path}: levels do not nest: block size {size} is no larger power of two times the first, {base}"
            )
        widths.append(width)
    for block in blocks:
        if sizes and len(block.nodes) < base:
            raise InstanceError(
                f"{block.where}: '{block.name}' has {len(block.nodes)} nodes, and block sizes begin at {base}"
            )
    outer = list(reversed(widths))
    around = {block.name: [f"blocks-{width}-{place // width}" for width in outer] for place, block in enumerate(blocks)}
    return [*(f"level-{len(outer) - place}" for place in range(len(outer))), "leaf"], around
