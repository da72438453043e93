"""The file of a cluster: what it may say, and how it is read."""

import json
import reprlib
import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from pydantic import Field, ValidationError, model_validator

from ddlopt.instances.clusters.units import MEMORY, NETWORK, WITHIN
from ddlopt.instances.workloads.accelerators import ACCELERATORS, Accelerator
from ddlopt.models.compression.timeline.instance import Compressor
from ddlopt.models.contracts import Part
from ddlopt.models.errors import DdloptError, InstanceError, UnknownNameError
from ddlopt.models.reading import UnreadableError, read_text

# Definitions.
_TERA, _GIGA, _BITS = 1e12, 1e9, 8
_SPINE = "network.spine_gigabit_per_s"
_NEAR_ENOUGH = 0.6
"""Likeness of a misspelt key and the one that is meant."""


class Servers(Part):
    """Servers of one kind.

    Parameters
    ----------
    count, accelerators : int
        How many, and of how many accelerators each.
    accelerator : str
        A name that ddlopt knows, or one of the file's own ``accelerator`` tables.
    memory_gigabytes : float, optional
        Of an accelerator, in 10⁹ bytes; no limit if not given.
    intra : {"nvlink", "pcie"}
        What connects the accelerators of a server.
    intra_gigabytes_per_s : float, optional
        Of an accelerator, per direction; 150 (NVLink 2) or 12.5 (PCIe 3.0) if not given.
    """

    count: int = Field(ge=1)
    accelerators: int = Field(default=1, ge=1)
    accelerator: str
    memory_gigabytes: float | None = Field(default=None, gt=0)
    intra: Literal["nvlink", "pcie"] = "nvlink"
    intra_gigabytes_per_s: float | None = Field(default=None, gt=0)


class Network(Part):
    """What connects the servers.

    Parameters
    ----------
    gigabit_per_s : float
        Of a server, per direction, all its cards together.
    latency_us : float, optional
        Of a message; 10 if not given, an assumption.
    unit_servers : int, optional
        Servers whose accelerators of the same rank hang on one switch (rails); beyond them is a spine.
    spine_gigabit_per_s : float, optional
        Of a server, to servers of other units; as inside a unit if not given.
    """

    gigabit_per_s: float = Field(gt=0)
    latency_us: float | None = Field(default=None, ge=0)
    unit_servers: int | None = Field(default=None, ge=1)
    spine_gigabit_per_s: float | None = Field(default=None, gt=0)


class Optics(Part):
    """Links between servers that a topology is made of.

    Parameters
    ----------
    degree : int
        Ports of a server.
    gigabit_per_s : float
        Of a link, per direction.
    kind : {"one_way", "duplex"}
    """

    degree: int = Field(ge=1)
    gigabit_per_s: float = Field(gt=0)
    kind: Literal["one_way", "duplex"] = "one_way"


class Racks(Part):
    """A fat-tree or leaf-spine above the servers: racks with uplinks that jobs share, and blocks of racks.

    Parameters
    ----------
    hosts_per_rack : int
    racks : int, optional
        As many as hold all servers if not given.
    uplink_gigabit_per_s : float, optional
        Of a rack, per direction, all its links together.
    oversubscription : float, optional
        In place of it: ``network.gigabit_per_s`` of all hosts of a rack, over its uplink.
    racks_per_block : int, optional
        There are no blocks if not given.
    block_uplink_gigabit_per_s, block_oversubscription : float, optional
        Likewise of a block; the latter is that of the uplinks of its racks over its own.
    """

    hosts_per_rack: int = Field(ge=1)
    racks: int | None = Field(default=None, ge=1)
    uplink_gigabit_per_s: float | None = Field(default=None, gt=0)
    oversubscription: float | None = Field(default=None, gt=0)
    racks_per_block: int | None = Field(default=None, ge=1)
    block_uplink_gigabit_per_s: float | None = Field(default=None, gt=0)
    block_oversubscription: float | None = Field(default=None, gt=0)

    def refuse(self, servers: int, network: Network | None) -> None:
        """Raise ValueError if levels do not nest, or an uplink is told twice or not at all."""
        racks = servers // self.hosts_per_rack if self.racks is None else self.racks
        if racks * self.hosts_per_rack != servers:
            told = (
                f"racks of {self.hosts_per_rack}" if self.racks is None else f"{racks} racks of {self.hosts_per_rack}"
            )
            raise ValueError(f"fabric does not nest: there are {servers} servers, which are not {told} hosts")
        if self.racks_per_block is not None and racks % self.racks_per_block:
            raise ValueError(
                f"fabric does not nest: there are {racks} racks, which are not blocks of {self.racks_per_block}"
            )
        if (self.uplink_gigabit_per_s is None) == (self.oversubscription is None):
            raise ValueError("fabric: give either uplink_gigabit_per_s or oversubscription")
        if self.oversubscription is not None and network is None:
            raise ValueError("fabric.oversubscription is of network.gigabit_per_s, which is missing")
        blocks = (self.block_uplink_gigabit_per_s is None) + (self.block_oversubscription is None)
        if self.racks_per_block is None and blocks < 2:
            raise ValueError("fabric: an uplink of blocks needs racks_per_block")
        if self.racks_per_block is not None and blocks != 1:
            raise ValueError("fabric: give either block_uplink_gigabit_per_s or block_oversubscription")

    def groups(self, servers: int, network: Network | None) -> list[dict[str, Any]]:
        """Blocks, then racks, as the groups of a fabric."""
        racks, found = servers // self.hosts_per_rack, list[dict[str, Any]]()
        host = 0.0 if network is None else network.gigabit_per_s
        own = self.uplink_gigabit_per_s or host * self.hosts_per_rack / (self.oversubscription or 1.0)
        if self.racks_per_block is not None:
            below = own * self.racks_per_block
            block = self.block_uplink_gigabit_per_s or below / (self.block_oversubscription or 1.0)
            for place in range(racks // self.racks_per_block):
                found.append({"name": f"block{place}", "uplink_bytes_per_s": block * _GIGA / _BITS})
        for place in range(racks):
            rack = {"name": f"rack{place}", "hosts": self.hosts_per_rack, "uplink_bytes_per_s": own * _GIGA / _BITS}
            found.append(rack | ({"inside": place // self.racks_per_block} if self.racks_per_block else {}))
        return found


class OwnAccelerator(Part):
    """An accelerator that ddlopt does not know, by what it sustains.

    Parameters
    ----------
    teraflop_per_s, convolution_teraflop_per_s : float
        Of matrix products and of convolutions; the latter is the former if not given.
    memory_gigabytes_per_s : float
    told : str
        Where the figures are from.
    """

    teraflop_per_s: float = Field(gt=0)
    convolution_teraflop_per_s: float | None = Field(default=None, gt=0)
    memory_gigabytes_per_s: float = Field(gt=0)
    told: str = ""


class Coding(Part):
    """Measured times of a compressor on an accelerator, for 2²⁰ numbers.

    Parameters
    ----------
    encode_us, decode_us : float
    """

    encode_us: float = Field(ge=0)
    decode_us: float = Field(ge=0)


class Cluster(Part):
    """A cluster.

    Parameters
    ----------
    name : str
    source : str
        Where the figures are from.
    servers : tuple of Servers
    network : Network, optional
    optics : Optics, optional
    fabric : Racks, optional
        What jobs of ``generate cluster`` share.
    accelerator : dict of str to OwnAccelerator
    compression : dict of str to Coding
        By compressor; those that are not measured have published times.
    confirm : tuple of str
        Figures that are meant as they are, although they look like bits for bytes, e.g. ``network.gigabit_per_s``, or
        are less inside than outside.
    """

    title: ClassVar[str] = "cluster"

    name: str
    source: str = ""
    servers: tuple[Servers, ...] = Field(min_length=1)
    network: Network | None = None
    optics: Optics | None = None
    fabric: Racks | None = None
    accelerator: dict[str, OwnAccelerator] = Field(default_factory=dict)
    compression: dict[str, Coding] = Field(default_factory=dict)
    confirm: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _names_are_known(self) -> "Cluster":
        known = (*ACCELERATORS, *self.accelerator)
        for place, servers in enumerate(self.servers):
            if servers.accelerator not in known:
                raise ValueError(
                    f"servers[{place}].accelerator is '{servers.accelerator}'; use one of {', '.join(known)}, or add a "
                    f"table [accelerator.{servers.accelerator}]"
                )
        for compressor in self.compression:
            if compressor not in get_args(Compressor):
                raise ValueError(f"compression.{compressor}: use one of {', '.join(get_args(Compressor))}")
        return self

    @model_validator(mode="after")
    def _levels_nest(self) -> "Cluster":
        if self.fabric is not None:
            self.fabric.refuse(sum(servers.count for servers in self.servers), self.network)
        return self

    @model_validator(mode="after")
    def _bandwidths_are_sensible(self) -> "Cluster":
        network, places = self.network, [place for place, _, _ in self._bandwidths()]
        if network is not None and network.spine_gigabit_per_s is not None:
            places.append(_SPINE)
            if network.unit_servers is None:
                raise ValueError(f"{_SPINE} is of servers of other units; network.unit_servers is missing")
        for place, doubt in self._doubts():
            if place not in self.confirm:
                raise ValueError(f'{place}: {doubt}; if it is meant so, add confirm = ["{place}"] on top')
        for place in self.confirm:
            if place not in places:
                raise ValueError(f"confirm: there is no bandwidth '{place}'; there are: {', '.join(places)}")
        return self

    def doubtful(self) -> tuple[str, ...]:
        """Bandwidths that look like bits for bytes, or are less inside than outside, which measurements may confirm."""
        return tuple(dict.fromkeys(place for place, _ in self._doubts()))

    def _doubts(self) -> Iterator[tuple[str, str]]:
        """Places of odd bandwidths, and what is odd."""
        for place, value, scale in self._bandwidths():
            doubt = scale.doubt(value)
            if doubt:
                yield place, doubt
        yield from self.slower_inside()

    def slower_inside(self) -> Iterator[tuple[str, str]]:
        """Places of bandwidths that are less than those around them, and what is odd."""
        if self.network is None:
            return
        network = self.network.gigabit_per_s
        for place, servers in enumerate(self.servers):
            inside, outside = servers.intra_gigabytes_per_s, network / _BITS / servers.accelerators
            if inside is not None and inside < outside and servers.accelerators > 1:
                yield (
                    f"servers[{place}].intra_gigabytes_per_s",
                    f"an accelerator has {inside:g} GB/s inside its server and {outside:g} outside, its part of "
                    "network.gigabit_per_s",
                )
        spine = self.network.spine_gigabit_per_s
        if spine is not None and spine > network:
            yield _SPINE, f"a server has {network:g} Gb/s inside its unit (network.gigabit_per_s) and {spine:g} outside"

    def _bandwidths(self) -> Iterator[tuple[str, float, Any]]:
        if self.network is not None:
            yield "network.gigabit_per_s", self.network.gigabit_per_s, NETWORK
        if self.optics is not None:
            yield "optics.gigabit_per_s", self.optics.gigabit_per_s, NETWORK
        for place, servers in enumerate(self.servers):
            if servers.intra_gigabytes_per_s is not None:
                yield f"servers[{place}].intra_gigabytes_per_s", servers.intra_gigabytes_per_s, WITHIN
        for name, own in self.accelerator.items():
            yield f"accelerator.{name}.memory_gigabytes_per_s", own.memory_gigabytes_per_s, MEMORY

    def sustained(self, name: str) -> Accelerator:
        """An accelerator of the file or one that is known."""
        if name not in self.accelerator:
            return ACCELERATORS[name]
        own = self.accelerator[name]
        flops_per_s = _TERA * own.teraflop_per_s
        convolutions = own.convolution_teraflop_per_s
        return Accelerator(
            f"{name} of cluster '{self.name}'" + (f" ({own.told})" if own.told else ""),
            flops_per_s,
            flops_per_s if convolutions is None else _TERA * convolutions,
            _GIGA * own.memory_gigabytes_per_s,
        )

    def to_toml(self) -> str:
        """Text of the file; :func:`load` gives the cluster back."""
        return _toml(self.model_dump(mode="json", exclude_none=True, exclude_defaults=True))


def _toml(data: dict[str, Any], path: str = "") -> str:
    """Plain values, then tables; JSON's strings, numbers and lists are TOML's too."""
    plain, tables = [], []
    for key, value in data.items():
        place = f"{path}.{key}" if path else key
        if isinstance(value, dict):
            leaf = not any(isinstance(each, dict) for each in value.values())
            tables.append(f"\n[{place}]\n" * leaf + _toml(value, place))
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            tables += [f"\n[[{place}]]\n{_toml(each, place)}" for each in value]
        else:
            plain.append(f"{key} = {json.dumps(value, ensure_ascii=False)}\n")
    return "".join(plain + tables)


def names() -> tuple[str, ...]:
    """The clusters that come with ddlopt."""
    return tuple(sorted(file.stem for file in _folder().glob("*.toml")))


def load(cluster: "str | Path | Cluster") -> Cluster:
    """A bundled cluster by its name, or one from a ``.toml`` file.

    Raises
    ------
    UnknownNameError
        If there is neither.
    InstanceError
        If the file is no cluster; the line says what to mend.
    """
    if isinstance(cluster, Cluster):
        return cluster
    path = _folder() / f"{cluster}.toml" if str(cluster) in names() else Path(cluster)
    if not path.exists() and path.suffix != ".toml":
        raise UnknownNameError(f"there is no cluster '{cluster}', and no such file; there are: {', '.join(names())}")
    try:
        data = tomllib.loads(read_text(path))
    except UnreadableError as problem:
        raise InstanceError(f"{path}: cannot be read: {problem}") from None
    except tomllib.TOMLDecodeError as problem:
        raise InstanceError(f"{path}: not valid TOML: {problem}") from None
    return from_data(data, str(path))


def from_data(data: Any, origin: str = "data") -> Cluster:
    """Validate plain data; ``origin`` names it in error messages."""
    try:
        return Cluster.model_validate(data)
    except ValidationError as problem:
        raise _told(problem, origin) from None


def _told(problem: ValidationError, origin: str) -> DdloptError:
    # A misspelt key comes before what is missing for it.
    first, *others = sorted(problem.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
    match first["type"]:
        case "extra_forbidden":
            message = f"there is no such key{_meant(first['loc'])}"
        case "missing":
            message = "is missing"
        case _:
            given = first["input"]
            shown = f" (it is {reprlib.repr(given)})" if isinstance(given, int | float | str) else ""
            message = first["msg"].removeprefix("Value error, ") + shown
    more = f" (and {len(others)} more)" if others else ""
    return InstanceError(f"{origin}: {place + ': ' if place else ''}{message}{more}")


def _meant(place: tuple[int | str, ...]) -> str:
    """What a key that is not known may mean, or where it belongs."""
    parts: dict[str, type[Part]] = {"": Cluster, "servers": Servers, "network": Network, "optics": Optics}
    parts |= {"fabric": Racks, "accelerator": OwnAccelerator, "compression": Coding}
    key, own = str(place[-1]), parts["" if len(place) == 1 else str(place[0])].model_fields
    homes = [name for name, part in parts.items() if key in part.model_fields]
    if homes:
        return f" here; it belongs {' or '.join(f'in [{name}]' if name else 'at the top' for name in homes)}"
    found = get_close_matches(key, own, 1, _NEAR_ENOUGH)
    return f"; did you mean '{found[0]}'?" if found else f"; keys are: {', '.join(own)}"


def _folder() -> Path:
    return Path(str(files(__package__)))
