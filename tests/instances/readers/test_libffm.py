"""Click logs in the format of libffm."""

import gzip
from pathlib import Path

import pytest

from ddlopt.instances.readers import convert
from ddlopt.instances.readers.libffm import read_libffm
from ddlopt.models.errors import InstanceError, OptionError

LOG = """1 0:7:0.5 1:3:1
0 0:7:0.5 1:4:1
0 0:8:0.5 1:3:0

1 0:7:0.5 1:9:2.5
0 0:7:1e-1 1:4:1
-1 0:8:1
"""


def written(folder: Path, text: str = LOG, name: str = "clicks.ffm") -> Path:
    path = folder / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def test_counts_by_hand(tmp_path: Path) -> None:
    # Rows touch {7, 3}, {7, 4}, {8}, {7, 9}, {7, 4}, {8}; batches of one row, iterations of two.
    instance = read_libffm(written(tmp_path), batch=1, workers=2, memory=0.5)
    job = instance.jobs[0]
    assert job.labels == ("7", "4", "8", "3", "9")
    assert job.frequencies * 6 == pytest.approx([4, 2, 2, 1, 1])
    assert job.saved_messages * 3 == pytest.approx([1, 0, 0, 0, 0])
    assert (instance.name, job.name, job.workers) == ("clicks-w2-b1", "clicks", 2)
    assert instance.switches[0].registers == 2
    derived = read_libffm(written(tmp_path), batch=1, workers=2, measured=False)
    assert derived.jobs[0].saved_messages is None


def test_what_fills_no_iteration_is_left_out(tmp_path: Path) -> None:
    instance = read_libffm(written(tmp_path), batch=2, workers=2)
    assert instance.jobs[0].labels == ("7", "3", "4", "8", "9")
    assert instance.jobs[0].frequencies.tolist() == [1.0, 0.5, 0.5, 0.5, 0.5]
    assert read_libffm(written(tmp_path), batch=1, rows=2, workers=2).jobs[0].labels == ("7", "3", "4")


def test_registers_hold_half_of_the_batches_out(tmp_path: Path) -> None:
    path = written(tmp_path, name="clicks.ffm.gz")
    instance = convert(path, "libffm", problem="registers", batch=1, parameters=3, arrays=2, capacity=1.0)
    assert instance.labels == ("7", "3", "4")
    assert instance.batches == ((0, 1), (0, 2), ())
    assert instance.held_out == ((0,), (0, 2), ())
    assert (instance.arrays, instance.entries, instance.capacity) == (2, 2, 2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1:9:2.5", "1:9", "line 5: '1:9' is not field:feature:value"),
        ("1:9:2.5", "1:x:2", "line 5: '1:x:2' is not"),
        ("1:9:2.5", "1:-9:2", "line 5: '1:-9:2' is not"),
        ("1:9:2.5", "1:9:nan", "line 5: '1:9:nan' is not"),
        ("-1 0", "yes 0", "line 7: the label is 'yes'; expected a number"),
        (LOG, "", "too few rows"),
    ],
)
@pytest.mark.parametrize("problem", ["hot", "registers"])
def test_broken_files_are_refused_in_one_line(tmp_path: Path, old: str, new: str, message: str, problem: str) -> None:
    path = written(tmp_path, LOG.replace(old, new))
    with pytest.raises(InstanceError) as refusal:
        read_libffm(path, problem=problem, batch=1, workers=2, parameters=1, arrays=1)
    assert message in str(refusal.value)
    assert str(refusal.value).startswith(str(path))
    assert "\n" not in str(refusal.value)


def test_files_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "clicks.ffm"
    path.write_bytes(b"1 0:7:1\n0 0:\xff:1\n")
    with pytest.raises(InstanceError, match="cannot be read, after line 2"):
        read_libffm(path)
    broken = tmp_path / "clicks.ffm.gz"
    broken.write_bytes(gzip.compress(LOG.encode())[:-12])
    with pytest.raises(InstanceError, match="cannot be read"):
        read_libffm(broken, batch=1)


def test_odd_options_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(OptionError, match="use one of: hot, registers"):
        read_libffm(path, problem="cold")
    with pytest.raises(OptionError, match="batch is 0"):
        read_libffm(path, batch=0)
    with pytest.raises(OptionError, match="the first 3 batches touch 4"):
        read_libffm(path, problem="registers", batch=1)
    with pytest.raises(InstanceError, match="an iteration of 4 workers has 40 rows"):
        read_libffm(path)
