"""Designs as static routes: followed by a parser, and in a network of this machine's namespaces."""

import itertools
import re
import shlex
import subprocess
from collections import Counter, defaultdict

import optical_network
import pytest
from refusals import one_line

import ddlopt
from ddlopt import instances
from ddlopt.instances.writers import export_plan, import_plan
from ddlopt.models.errors import OptionError
from ddlopt.models.topology import TopologyDesign, TopologyInstance

TINY = "topology/tiny-n4-d2"
DESIGNS = [TINY, "topology/tiny-n5-d3-duplex", "topology/dlrm-n12-d4", "codesign/bert-n12-d4"]
NO_NETWORK = optical_network.refusal()


def design_of(full):
    solution = instances.best(full)
    return getattr(solution, "design", solution)


def said(text, title):
    """Rows of a section in the comments, as words."""
    lines = text.split("\n")
    start = next(at for at, line in enumerate(lines) if line.startswith(f"# {title}"))
    rows = []
    for line in lines[start + 3 :]:
        if line in ("#", ""):
            return rows
        rows.append(line[2:].split())
    return rows


def patches_of(text):
    """(plane, from, to) by numbers of servers."""
    number = {name: int(server) for server, name, _ in said(text, "Servers")}
    return [(int(plane), number[i], number[j]) for plane, i, _, j in said(text, "Patches")]


def paths_of(text):
    """Address and servers of each path."""
    number = {name: int(server) for server, name, _ in said(text, "Servers")}
    rows = [line[2:].split("  ") for line in text.split("\n") if line.startswith("# 10.128.")]
    return [(row[0].strip(), tuple(number[name] for name in row[-1].strip().split(" -> "))) for row in rows]


class Server:
    """What the script does on one server."""

    def __init__(self, lines):
        self.mac, self.local, self.neighbours, self.routes = {}, set(), {}, {}
        for line in lines:
            match shlex.split(line):
                case ["server", address]:
                    self.local.add(address)
                case ["interface", plane, mac, address]:
                    self.mac[int(plane)] = mac
                    self.local.add(address)
                case ["ip", "address", "replace", address, "dev", "lo"]:
                    self.local.add(address.removesuffix("/32"))
                case ["ip", "neighbour", "replace", address, "lladdr", mac, "dev", device, "nud", "permanent"]:
                    self.neighbours[address, int(device.removeprefix("plane"))] = mac
                case ["ip", "route", "replace", address, "src", _, *hops]:
                    found = re.findall(r"via (\S+) dev plane(\d+) onlink", " ".join(hops))
                    assert address.removesuffix("/32") not in self.routes
                    self.routes[address.removesuffix("/32")] = [(via, int(plane)) for via, plane in found]
                case unknown:
                    raise AssertionError(unknown)


def servers_of(text):
    blocks = re.findall(r"^(\S+)\)\n((?:  .*\n)+?)  ;;$", text[text.index("case ") :], re.MULTILINE)
    return [Server(body.splitlines()) for name, body in blocks if name != "*"]


def followed(servers, patches, start, address):
    """Servers that a packet to an address visits."""
    wires, found = {(plane, i): j for plane, i, j in patches}, [start]
    while address not in servers[found[-1]].local:
        here = servers[found[-1]]
        there = set()
        for via, plane in here.routes[address]:
            after = wires[plane, found[-1]]
            assert here.neighbours[via, plane] == servers[after].mac[plane], "the frame is for who receives it"
            there.add(after)
        assert len(there) == 1
        found += there
        assert len(found) <= len(servers)
    return tuple(found)


def both_ways(full, patches):
    """The patches of all transmitters."""
    duplex = ddlopt.load(full).optics == "duplex"
    return [*patches, *((plane, j, i) for plane, i, j in patches)] if duplex else patches


@pytest.mark.parametrize("full", DESIGNS)
def test_every_path_is_routed_hop_by_hop(full, tmp_path):
    instance, solution, design = ddlopt.load(full), instances.best(full), design_of(full)
    file = tmp_path / "routes.sh"
    file.write_text(export_plan(instance, solution, "routes"))
    text = file.read_text()
    assert import_plan(instance, file) == solution
    patches, paths, servers = both_ways(full, patches_of(text)), paths_of(text), servers_of(text)
    wanted = [way for ring in design.rings for way in ring.paths] + [
        way for route in design.routes for way in route.paths
    ]
    assert [way for _, way in paths] == wanted
    assert len({address for address, _ in paths}) == len(paths)
    for address, way in paths:
        assert followed(servers, patches, way[0], address) == way
    for plane in range(instance.degree):
        ends = [(i, j) for at, i, j in patches if at == plane]
        assert max(Counter(i for i, _ in ends).values(), default=0) <= 1
        assert max(Counter(j for _, j in ends).values(), default=0) <= 1
    laid = defaultdict(int)
    for _, i, j in patches:
        laid[i, j] += 1
    assert laid == design.link_counts(instance)
    addresses = {i: f"10.0.0.{i + 1}" for i in range(instance.servers)}
    for i, j in itertools.permutations(addresses, 2):
        assert followed(servers, patches, i, addresses[j])[-1] == j, "there is a way back"


def test_rings_are_in_rank_order():
    rows = said(export_plan(ddlopt.load(TINY), instances.best(TINY), "routes", hosts="a,b,c,d"), "Rings")
    names = "abcd"
    assert [row[3::2] for row in rows] == [[names[i] for i in ring.members] for ring in design_of(TINY).rings]


@pytest.mark.skipif(NO_NETWORK is not None, reason=str(NO_NETWORK))
@pytest.mark.parametrize("full", [*DESIGNS[:2], pytest.param(DESIGNS[2], marks=pytest.mark.slow)])
def test_packets_take_the_paths_of_the_design(full, tmp_path):
    instance, names = ddlopt.load(full), [f"s-{i}" for i in range(ddlopt.load(full).servers)]
    file = tmp_path / "routes.sh"
    file.write_text(export_plan(instance, instances.best(full), "routes", hosts=names))
    text = file.read_text()
    with optical_network.Network(instance.servers, patches_of(text), instance.optics == "duplex") as network:
        network.set_up(file, names)
        for address, way in paths_of(text):
            assert network.traced(way[0], address) == way
            assert network.sent(way[0], address) == len(way) - 1, "hops by the packet's time to live, and an answer"


def test_a_server_that_is_not_in_the_plan_is_told(tmp_path):
    file = tmp_path / "routes.sh"
    file.write_text(export_plan(ddlopt.load(TINY), instances.best(TINY), "routes"))
    done = subprocess.run(["bash", file, "elsewhere"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "there is no server elsewhere in this plan\n")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"hosts": "a,b"}, "hosts names 2 servers, but there are 4"),
        ({"hosts": ["a", "b", "c", "*"]}, "hosts names '*'; a name of a host"),
        ({"device": "$(id)"}, "device is '$(id)'"),
        ({"device": "p" * 13}, "have at most 12"),
        ({"device": 3}, "device is 3"),
    ],
)
def test_options_that_are_refused(options, says):
    with one_line(OptionError, says):
        export_plan(ddlopt.load(TINY), instances.best(TINY), "routes", **options)


def test_a_path_that_comes_back_has_no_static_route():
    traffic = [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    instance = TopologyInstance(
        name="mine", servers=3, degree=2, link_bandwidth_bytes_per_s=1.0, traffic_bytes=traffic, overlap="none"
    )
    links = ((0, 1, 1), (0, 2, 1), (2, 0, 1))
    route = {"source": 0, "target": 1, "paths": ((0, 2, 0, 1),), "fractions": (1.0,)}
    design = TopologyDesign(instance="mine", links=links, routes=(route,))
    if not ddlopt.check(instance, design).feasible:
        pytest.skip("the check refuses such paths by itself")
    with one_line(OptionError, "route 0 to 1, 1 visits a server twice, 0 -> 2 -> 0 -> 1; no static route can do that"):
        export_plan(instance, design, "routes")
