"""Instances with one figure that is out of all proportion: refused in one line, or answered with a finite bound."""

import copy
import json
import math
from contextlib import suppress

import pytest
from volume import for_each, some

from ddlopt import DdloptError, convert, generate
from ddlopt.instances import index
from ddlopt.instances.library import library_folder
from ddlopt.models.catalogue import family
from ddlopt.models.errors import OptionError

ODD = (10**9, 10**12, 2**63, 10**20, 1e18, 1e300, 1e-300, 5e-324, -1, 0, 1.5)


def smallest():
    """The smallest file of each problem, by problem."""
    files = {}
    for listed in index.read().instances.values():
        family_name, stem = listed.name.split("/")
        files.setdefault(listed.problem, []).append(library_folder(family_name) / f"{stem}.json")
    return {problem: min(each, key=lambda file: file.stat().st_size) for problem, each in files.items()}


SMALLEST = smallest()


def places(data, path=()):
    """Where a figure stands, each field once."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from places(value, (*path, name))
    elif isinstance(data, list):
        yield from places(data[0], (*path, 0)) if data else ()
    elif data is None or (isinstance(data, int | float) and not isinstance(data, bool)):
        yield path


def changed(data, path, value):
    data = copy.deepcopy(data)
    part = data
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    return data


@pytest.mark.parametrize("problem", some(sorted(SMALLEST), sorted(SMALLEST)[::4]))
def test_one_odd_figure(problem):
    data = json.loads(SMALLEST[problem].read_text(encoding="utf-8"))
    kind = family(data["family"])
    for path in places(data):
        for value in ODD:
            with suppress(DdloptError):
                bound = kind.bound(kind.instance.from_data(changed(data, path, value)))
                assert bound is None or math.isfinite(bound), (path, value)


@for_each(
    ("arguments", "options", "said"),
    [
        (
            ("topology", "all-to-all"),
            {"servers": 10**9, "degree": 2},
            "servers is 1000000000: so many would need about",
        ),
        (("topology", "all-to-all"), {"servers": 50_000, "degree": 2}, "traffic between so many servers"),
        (("topology", "ring"), {"servers": 6, "degree": 2, "stride": float("inf")}, "stride is inf"),
        (("scheduling", "elastic"), {"jobs": 10**7}, "jobs is 10000000: so many would need about 27.9 GB"),
        (("scheduling", "elastic"), {"slots": 10**20 - 1}, "slots is 99999999999999999999: so many"),
        (("codesign", "random"), {"twins": 10**21}, "twins is 1000000000000000000000: so many"),
        (("topology", "random"), {"servers": 4, "degree": 2, "seed": 2**64}, "of 0 to 9223372036854775807"),
    ],
)
def test_sizes_are_refused_with_an_estimate(arguments, options, said):
    with pytest.raises(DdloptError, match=said):
        generate(*arguments, **options)


@pytest.mark.parametrize("count", [10**5, 10**9, 10**12])
def test_servers_of_a_cluster_are_counted_before_they_are_listed(tmp_path, count):
    """A plan's devices are a group for each server, with bandwidths between all pairs of them."""
    cluster = tmp_path / "cluster.toml"
    cluster.write_text(
        f"name = 'many'\n[[servers]]\ncount = {count}\naccelerators = 8\naccelerator = 'a100'\n"
        "memory_gigabytes = 80\n[network]\ngigabit_per_s = 400\n"
    )
    model = tmp_path / "config.json"
    model.write_text(json.dumps({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100}))
    with pytest.raises(OptionError, match=rf"cluster 'many' has {count} servers: bandwidths .* about .* GB of memory"):
        convert(model, "transformer-deployment", cluster=str(cluster))
