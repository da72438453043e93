"""The format ``routes``: rings in rank order, patches of the optical layer, and a script of static routes per server.

Linux routes by destination, and paths of a design may leave a server differently for the same destination. So every
path has an address of its own, which its last server owns: what is sent to it takes just this path. Links that two
servers share are next hops of equal weight. Answers, which a design says nothing of, take shortest paths.
"""

import itertools
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ddlopt.instances.writers import codesign, topology
from ddlopt.instances.writers.layout import Section, path, section, text_of
from ddlopt.instances.writers.words import bash_word, host_names
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.contracts import Evaluation
from ddlopt.models.errors import OptionError, SolverError
from ddlopt.models.topology.instance import Fabric, TopologyInstance
from ddlopt.models.topology.planes import Plane, colour_planes
from ddlopt.models.topology.solution import TopologyDesign

# Addresses: 10.0.server of servers, 10.(1 + plane).server of interfaces, from 10.128.0.0 on of paths.
_MOST_SERVERS, _MOST_PLANES, _MOST_PATHS = 2**16 - 1, 126, 2**23
# 10.128.0.0 as a number.
_FIRST_PATH = (10 << 24) + (128 << 16)
_DEVICE = re.compile(r"[a-z][a-z0-9_-]{0,11}")

_HEAD = r"""# Run it as root on every server, with the server's name, after the patches below have been made:
#
#   bash THIS_FILE "$(hostname)"
#
# Interface PLANE of a server is {device}PLANE; its transmitter and its receiver go where the patches say.
set -euo pipefail
interface() { # PLANE MAC ADDRESS
  ip link set dev {device}$1 address "$2" up
  ip address replace "$3/32" dev {device}$1
  sysctl -qw "net.ipv4.conf.{device}$1.rp_filter=0"
}
server() { # ADDRESS
  sysctl -qw net.ipv4.ip_forward={forward} net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.all.send_redirects=0
  sysctl -qw net.ipv4.fib_multipath_hash_policy=1
  ip link set dev lo up
  ip address replace "$1/32" dev lo
}
case "${1:?name the server}" in
"""


class _Way(NamedTuple):
    """A path of the design, with what it is for."""

    what: str
    servers: tuple[int, ...]
    address: str


def routes(
    instance: TopologyInstance | CodesignInstance,
    solution: TopologyDesign | CodesignPlan,
    evaluation: Evaluation,
    hosts: str | list[str] | None = None,
    device: str = "plane",
) -> str:
    """A script of Bash, with rings, patches and paths in comments.

    Parameters
    ----------
    hosts : str or list of str, optional
        Names of the servers, in order.
    device : str
        What names of interfaces begin with; the number of the plane follows.

    Raises
    ------
    OptionError
        If there are more servers, planes or paths than addresses, or a path visits a server twice.
    """
    names = host_names(hosts, instance.servers)
    if not isinstance(device, str) or not _DEVICE.fullmatch(device):
        raise OptionError(f"device is {device!r}; names of interfaces begin with small letters, and have at most 12")
    design = solution.design if isinstance(solution, CodesignPlan) else solution
    _require_room(instance)
    ways = _ways(design)
    planes = design.planes or _coloured(instance, design)
    patches = _patches(instance, planes)
    told = _told(instance, solution, design, names, planes, ways)
    lines = [f"# {line}".rstrip() for line in told.rstrip("\n").split("\n")]
    head = _HEAD.replace("{device}", device).replace("{forward}", str(int(instance.host_forwarding)))
    lines += ["", *head.rstrip("\n").split("\n")]
    answers = _next_hops(instance.servers, patches)
    if not instance.host_forwarding:
        answers = {(source, target): hop for (source, target), hop in answers.items() if hop == target}
    for server, name in enumerate(names):
        lines += [
            f"{bash_word(name)})",
            *(f"  {each}" for each in _commands(server, device, patches, ways, answers)),
            "  ;;",
        ]
    return "\n".join([*lines, "*)", '  echo "there is no server $1 in this plan" >&2', "  exit 2", "  ;;", "esac"])


def _require_room(instance: Fabric) -> None:
    for what, count, most in (("servers", instance.servers, _MOST_SERVERS), ("degree", instance.degree, _MOST_PLANES)):
        if count > most:
            raise OptionError(f"{what} of '{instance.name}' is {count}, but there are addresses for {most} only")


def _ways(design: TopologyDesign) -> tuple[_Way, ...]:
    named = [
        (f"ring {place}, rank {rank}", way)
        for place, ring in enumerate(design.rings)
        for rank, way in enumerate(ring.paths)
    ]
    named += [
        (f"route {route.source} to {route.target}, {part:.6g}", way)
        for route in design.routes
        for part, way in zip(route.fractions, route.paths, strict=True)
    ]
    if len(named) > _MOST_PATHS:
        raise OptionError(f"the design has {len(named)} paths, but there are addresses for {_MOST_PATHS} only")
    for what, way in named:
        if len(set(way)) < len(way):
            raise OptionError(f"{what} visits a server twice, {path(way)}; no static route can do that")
    return tuple(_Way(what, way, _dotted(_FIRST_PATH + place)) for place, (what, way) in enumerate(named))


def _coloured(instance: Fabric, design: TopologyDesign) -> tuple[Plane, ...]:
    """Planes of one-way links that come without: transmitters and receivers are the two sides of a bipartite graph."""
    n = instance.servers
    laid: dict[tuple[int, int], int] = defaultdict(int)
    for i, j, count in design.links:
        laid[i, n + j] += count
    found = colour_planes(2 * n, laid, instance.degree)
    if found is None:
        raise SolverError(f"links of '{instance.name}' were not spread over {instance.degree} planes")
    return tuple(tuple((i, j - n) for i, j in plane) for plane in found)


def _patches(instance: Fabric, planes: Sequence[Plane]) -> dict[tuple[int, int], list[int]]:
    """Planes that join a server's transmitter to another one's receiver."""
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for plane, pairs in enumerate(planes):
        for i, j in pairs:
            found[i, j].append(plane)
            if instance.optics == "duplex":
                found[j, i].append(plane)
    return dict(found)


def _told(
    instance: TopologyInstance | CodesignInstance,
    solution: TopologyDesign | CodesignPlan,
    design: TopologyDesign,
    names: Sequence[str],
    planes: Sequence[Plane],
    ways: Sequence[_Way],
) -> str:
    arrow = "<->" if instance.optics == "duplex" else "->"
    rows = [(place, names[i], arrow, names[j]) for place, plane in enumerate(planes) for i, j in sorted(plane)]
    rings = [
        (place, ring.group, f"{ring.share:.6g}", path(names[i] for i in ring.members))
        for place, ring in enumerate(design.rings)
    ]
    strategies: list[Section] = []
    if isinstance(instance, CodesignInstance) and isinstance(solution, CodesignPlan):
        strategies += codesign.layers(instance, solution)
    return text_of(
        [
            section(
                "Servers", ("server", "name", "address"), [(i, name, _of_server(i)) for i, name in enumerate(names)]
            ),
            *strategies,
            section("Rings, servers in rank order", ("ring", "group", "share", "ranks"), rings),
            section("Patches: transmitter to receiver, or both ways", ("plane", "from", "", "to"), rows),
            topology.links(instance, design),
            section(
                "Paths, each with the address to send to",
                ("address", "what", "hop by hop"),
                [(way.address, way.what, path(names[i] for i in way.servers)) for way in ways],
            ),
        ]
    )


def _commands(
    server: int,
    device: str,
    patches: Mapping[tuple[int, int], Sequence[int]],
    ways: Sequence[_Way],
    answers: Mapping[tuple[int, int], int],
) -> Iterator[str]:
    yield f"server {_of_server(server)}"
    used = sorted({plane for pair, planes in patches.items() if server in pair for plane in planes})
    for plane in used:
        yield f"interface {plane} {_mac(plane, server)} {_of_interface(plane, server)}"
    for (i, j), planes in sorted(patches.items()):
        if i == server:
            for plane in planes:
                there = f"{_of_interface(plane, j)} lladdr {_mac(plane, j)}"
                yield f"ip neighbour replace {there} dev {device}{plane} nud permanent"
    for way in ways:
        if way.servers[-1] == server:
            yield f"ip address replace {way.address}/32 dev lo"
        for i, j in itertools.pairwise(way.servers):
            if i == server:
                yield _route(way.address, server, j, device, patches[i, j])
    for (source, target), hop in sorted(answers.items()):
        if source == server:
            yield _route(_of_server(target), server, hop, device, patches[source, hop])


def _route(address: str, server: int, hop: int, device: str, planes: Sequence[int]) -> str:
    hops = [f"via {_of_interface(plane, hop)} dev {device}{plane} onlink" for plane in planes]
    where = hops[0] if len(hops) == 1 else " ".join(f"nexthop {each} weight 1" for each in hops)
    return f"ip route replace {address}/32 src {_of_server(server)} {where}"


def _next_hops(servers: int, patches: Mapping[tuple[int, int], Sequence[int]]) -> dict[tuple[int, int], int]:
    """The next server on a shortest path, by source and target, where there is one."""
    before: list[list[int]] = [[] for _ in range(servers)]
    for i, j in sorted(patches):
        before[j].append(i)
    found: dict[tuple[int, int], int] = {}
    for target in range(servers):
        queue = deque([target])
        while queue:
            at = queue.popleft()
            for i in before[at]:
                if i != target and (i, target) not in found:
                    found[i, target] = at
                    queue.append(i)
    return found


def _dotted(number: int) -> str:
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def _of_server(server: int) -> str:
    return _of_interface(-1, server)


def _of_interface(plane: int, server: int) -> str:
    return _dotted((10 << 24) + ((plane + 1) << 16) + server + 1)


def _mac(plane: int, server: int) -> str:
    """A locally administered address."""
    return f"02:dd:00:{plane:02x}:{server >> 8:02x}:{server & 255:02x}"
