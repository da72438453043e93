"""The bundled scheduling instances: the generators make all but one, which is an hour of a public trace."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.scheduling import generate
from ddlopt.instances.generators.scheduling.tiny import FEATURES
from ddlopt.instances.library import library_folder
from ddlopt.models.scheduling import SchedulingInstance

WATT_HOURS = 3600.0
"""Joules."""

_ELASTIC = ((10, 10, 8), (20, 20, 16), (50, 20, 32), (50, 50, 32), (100, 50, 64), (200, 100, 64))
"""Jobs, slots, GPUs."""

_GANGS = ((38, 32), (80, 64), (160, 128))
"""Jobs, GPUs."""

_ONE_SLOT: dict[str, Any] = {"jobs": 80, "slots": 1, "servers": 20, "arrival_part": 0.0, "load": 3.0}

_SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "capped-j50-t50-g32": ("elastic", {"jobs": 50, "slots": 50, "gpus": 32, "utility": "capped"}),
    "deadlines-j50-t50-g32": (
        "elastic",
        {"jobs": 50, "slots": 50, "gpus": 32, "utility": "capped", "deadline_part": 0.7, "load": 2.0},
    ),
    "loss-curve-j20-t20-g16": ("elastic", {"utility": "loss_curve"}),
    "fair-j20-t20-g16": ("elastic", {"utility": "fair"}),
    "all-or-nothing-j20-t20-g16": ("elastic", {"utility": "all_or_nothing"}),
    "max-min-j20-t20-g16": ("elastic", {"objective": "max_min"}),
    "energy-j20-t20-g16": (
        "elastic",
        {"utility": "capped", "worker_w": 400.0, "energy_price_per_j": 0.5 / (1000 * WATT_HOURS)},
    ),
    "change-j20-t20-g16": ("elastic", {"change_s": 300.0}),
    "runs-j20-t20-g16": ("elastic", {"least_run_slots": 4}),
    "types-j20-t20-g16": ("elastic", {"types": "v100:1,p100:0.45,k80:0.2"}),
    "completion-j12-t30-g8": ("elastic", {"jobs": 12, "slots": 30, "gpus": 8, "load": 0.4, "objective": "completion"}),
    "makespan-j12-t30-g8": ("elastic", {"jobs": 12, "slots": 30, "gpus": 8, "load": 0.4, "objective": "makespan"}),
    "fairness-gangs-j38-g32": (
        "sjf-bco",
        {"jobs": 38, "gpus": 32, "slots": 100, "objective": "finish_time_fairness"},
    ),
    "fairness-bursty-j40-g16": ("bursty", {"objective": "finish_time_fairness"}),
    "slot-loose": ("contended", _ONE_SLOT | {"gpus_per_server": 8, "rings_per_nic": 8.0}),
    "slot-two-rings": (
        "contended",
        _ONE_SLOT | {"gpus_per_server": 8, "rings_per_nic": 2.0, "rigid": True, "widest": 12},
    ),
    "slot-tight": ("contended", _ONE_SLOT),
    "slot-rigid": ("contended", _ONE_SLOT | {"rigid": True}),
    "contended-j20-t10-s4": ("contended", {}),
    "contended-rigid-j20-t10-s4": ("contended", {"rigid": True}),
    "contended-shared-j10-t4-s4": ("contended", {"jobs": 10, "slots": 4, "bandwidth": "shared"}),
    "leaf-spine-j20-t10-s8": ("leaf-spine", {}),
    "leaf-spine-j40-t10-s16": ("leaf-spine", {"jobs": 40, "servers": 16, "gpus_per_server": 4, "rack_servers": 4}),
    "random-network-j12-t6-s6": ("random-network", {}),
    "pd-ors-like-j50-t20-s100": ("pd-ors-like", {}),
    "pd-ors-like-j50-t20-s20": ("pd-ors-like", {"servers": 20}),
    "gangs-contention-j6-g8": (
        "sjf-bco",
        {"jobs": 6, "gpus": 8, "widest": 4, "contention": True, "slot_s": 20.0, "slots": 20},
    ),
    "gangs-contention-j12-g16": (
        "sjf-bco",
        {"jobs": 12, "gpus": 16, "widest": 8, "contention": True, "slot_s": 20.0, "slots": 40},
    ),
    "gangs-contention-j38-g32": ("sjf-bco", {"jobs": 38, "gpus": 32, "widest": 16, "contention": True, "slots": 100}),
    "departures-half": ("departures", {"edge": 1e-6}),
    "departures-j16-t8-g8": ("departures", {"jobs": 16, "slots": 8, "gpus": 8, "jitter": 0.1}),
    "departures-j96-t24-g16": ("departures", {"jobs": 96, "slots": 24, "gpus": 16, "jitter": 0.1}),
    "caps-three-quarters": ("caps", {"edge": 1e-6}),
    "caps-j11-t12-g16": ("caps", {"jobs": 3, "slots": 12, "gpus": 16, "spread": 0.05}),
    "bursty-j40-t24-g16": ("bursty", {}),
    "bursty-j80-t48-g32": ("bursty", {"jobs": 80, "slots": 48, "gpus": 32, "bursts": 12}),
}
"""Kind and options by name; the seed is 1."""

FROM_PHILLY: dict[str, dict[str, Any]] = {
    "philly-hour-j49-t48-g32": {
        "virtual_cluster": "6c71a0",
        "start": "2017-11-11 14:00:00",
        "hours": 1.0,
        "tail_hours": 3.0,
        "slot_s": 300.0,
        "gpus": 32,
        "slack": 1.0,
    }
}
"""Options of the reader of the Philly trace by name. The trace is not bundled, so that the file is the original: a test
reads the trace again and compares."""


def instances() -> Iterator[SchedulingInstance]:
    """All bundled instances of the family."""
    for feature in FEATURES:
        yield generate("tiny", 2, name=f"tiny-{feature.replace('_', '-')}", feature=feature)
    for jobs, slots, gpus in _ELASTIC:
        yield generate("elastic", 1, name=f"elastic-j{jobs}-t{slots}-g{gpus}", jobs=jobs, slots=slots, gpus=gpus)
    for jobs, gpus in _GANGS:
        yield generate("sjf-bco", 1, name=f"gangs-j{jobs}-g{gpus}", jobs=jobs, gpus=gpus, slots=100)
    for name, (kind, options) in _SHAPES.items():
        yield generate(kind, 1, name=name, **options)
    for name in FROM_PHILLY:
        yield SchedulingInstance.from_file(library_folder("scheduling") / f"{name}.json")
