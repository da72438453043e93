"""Whatever is a valid instance survives JSON unchanged."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddlopt.instances.library.make import text_of
from ddlopt.models.topology import TopologyInstance

AMOUNTS = st.one_of(st.just(0.0), st.integers(1, 2**60).map(float), st.floats(1e-100, 1e100))


@st.composite
def instances(draw):
    n = draw(st.integers(2, 20))
    traffic = np.zeros((n, n))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda pair: pair[0] != pair[1])
    for i, j in draw(st.lists(pairs, max_size=n * n)):
        traffic[i, j] = draw(AMOUNTS)
    members = st.sets(st.integers(0, n - 1), min_size=2).map(sorted)
    groups = st.lists(
        st.fixed_dictionaries({"members": members, "gradient_bytes": st.floats(1e-100, 1e100)}),
        min_size=0 if traffic.any() else 1,
        max_size=3,
    )
    return TopologyInstance.from_data(
        {
            "name": draw(st.text(max_size=20)),
            "source": draw(st.text(max_size=20)),
            "servers": n,
            "degree": draw(st.integers(1, n - 1)),
            "link_bandwidth_bytes_per_s": draw(st.floats(1e-100, 1e100)),
            "optics": draw(st.sampled_from(["one_way", "duplex"])),
            "parallel_links": draw(st.booleans()),
            "host_forwarding": draw(st.booleans()),
            "allreduce_groups": draw(groups),
            "traffic_bytes": traffic,
            "compute_s": draw(AMOUNTS),
            "overlap": draw(st.sampled_from(["none", "full"])),
        }
    )


def gives_the_instance_back(instance):
    for text in (instance.to_json(), instance.to_json(indent=None), text_of(instance)):
        back = TopologyInstance.from_json(text)
        assert back == instance
        assert back.digest == instance.digest
        assert np.array_equal(back.traffic_bytes, instance.traffic_bytes)
        assert back.model_dump(exclude={"traffic_bytes"}) == instance.model_dump(exclude={"traffic_bytes"})


test_json_gives_the_instance_back = settings(max_examples=20, deadline=None)(
    given(instances())(gives_the_instance_back)
)
test_json_gives_the_instance_back_often = pytest.mark.slow(
    settings(max_examples=100, deadline=None)(given(instances())(gives_the_instance_back))
)


@given(instances())
@settings(max_examples=50, deadline=None)
def test_rows_and_entries_mean_the_same(instance):
    n = instance.servers
    data = json.loads(instance.to_json())
    amounts = [[i, j, instance.traffic_bytes[i, j]] for i in range(n) for j in range(n) if instance.traffic_bytes[i, j]]
    as_entries = TopologyInstance.from_data(data | {"traffic_bytes": {"size": n, "entries": amounts}})
    as_rows = TopologyInstance.from_data(data | {"traffic_bytes": instance.traffic_bytes.tolist()})
    assert as_entries == as_rows == instance
