"""What the machine has left, as files of the system say it."""

import pytest

from ddlopt.solvers import machine


@pytest.fixture
def root(tmp_path):
    def write(**files):
        for name, text in files.items():
            file = tmp_path / name.replace("__", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return tmp_path

    return write


MEMINFO = {"proc__meminfo": "MemTotal: 4000 kB\nMemAvailable:    3000 kB\n"}
GROUP = "sys__fs__cgroup__"


def test_nobody_says(tmp_path):
    assert machine.memory_left_bytes(tmp_path) is None


def test_the_machine(root):
    assert machine.memory_left_bytes(root(**MEMINFO)) == 3000 * 1024


@pytest.mark.parametrize(
    ("limit", "left"),
    [("1000000", 1_000_000 - 400_000 + 100_000), ("max", 3000 * 1024), ("9223372036854771712", 3072000)],
)
def test_a_group_of_version_2(root, limit, left):
    files = {
        "proc__self__cgroup": "0::/a/b\n",
        f"{GROUP}a__memory.max": limit,
        f"{GROUP}a__memory.current": "400000\n",
        f"{GROUP}a__memory.stat": "anon 5\ninactive_file 100000\n",
        f"{GROUP}a__b__memory.max": "max\n",
    }
    assert machine.memory_left_bytes(root(**MEMINFO, **files)) == left


def test_a_group_of_version_1_that_is_mounted_as_the_root(root):
    files = {
        "proc__self__cgroup": "9:cpu:/a\n4:memory:/docker/1234\n0::/\n",
        f"{GROUP}memory__memory.limit_in_bytes": "1000000",
        f"{GROUP}memory__memory.usage_in_bytes": "1200000",
    }
    assert machine.memory_left_bytes(root(**MEMINFO, **files)) == 0


def test_this_one():
    left = machine.memory_left_bytes()
    assert left is None or left > 0
    assert machine.memory_bytes() > 0
