"""Archives of sets of instances."""

import hashlib
import io
import json
import subprocess
import sys
import zipfile

import pytest

import ddlopt
from ddlopt.analysis.bench import sets
from ddlopt.analysis.library_site import archives
from ddlopt.models.errors import OptionError


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archives")
    return folder, archives.write_archives(folder, "9.9.9", ["tiny"])


def test_an_archive_has_what_a_set_has(written, tmp_path):
    folder, (made,) = written
    assert made.file == folder / "ddlopt-9.9.9-tiny.zip"
    with zipfile.ZipFile(made.file) as packed:
        packed.extractall(tmp_path)
    root = tmp_path / "ddlopt-9.9.9-tiny"
    listed = json.loads((root / "library.json").read_text(encoding="utf-8"))
    assert [each["name"] for each in listed] == list(sets.members("tiny"))
    for each in listed:
        instance = ddlopt.load(root / "instances" / f"{each['name']}.json")
        assert instance.digest == sets.members("tiny")[each["name"]]
    name = next(each["name"] for each in listed if each["problem"] == "topology")
    pair = (root / f"instances/{name}.json", root / f"solutions/{name}.best.json")
    ran = subprocess.run([sys.executable, "-I", root / "checkers/topology.py", *pair], capture_output=True)
    assert ran.stdout.endswith(b"feasible\n")
    assert ran.returncode == 0


def test_checksums_are_those_of_all_files(written):
    folder, (made,) = written
    content = made.file.read_bytes()
    assert (folder / archives.SUMS).read_text() == f"{hashlib.sha256(content).hexdigest()}  {made.file.name}\n"
    assert (made.sha256, made.bytes) == (hashlib.sha256(content).hexdigest(), len(content))
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        root = "ddlopt-9.9.9-tiny/"
        sums = packed.read(f"{root}{archives.SUMS}").decode().splitlines()
        found = dict(reversed(line.split("  ")) for line in sums)
        assert {root + name for name in found} == set(packed.namelist()) - {root + archives.SUMS}
        assert all(hashlib.sha256(packed.read(root + name)).hexdigest() == found[name] for name in found)


def test_the_same_library_gives_the_same_bytes(written):
    assert archives.archive("tiny", "9.9.9") == written[1][0].file.read_bytes()


def test_what_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(OptionError, match="there is no set 'huge'; there are: tiny, standard, hard, open"):
        archives.write_archives(tmp_path, "1", ["huge"])
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="cannot be written"):
        archives.write_archives(tmp_path / "file", "1", ["tiny"])
