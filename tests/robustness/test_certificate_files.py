"""The file of a certificate: what is written is read again, and what is damaged, endless or no file is one line."""

import dataclasses
import gzip
import json
import os
import random

import numpy as np
import pytest
from robustness.forgeries import made

import ddlopt
from ddlopt.certificates.topology import DesignCertificate, check_certificate
from ddlopt.models.errors import DdloptError, RefutedError, SolutionError, SolverError
from ddlopt.models.topology import TopologyInstance

THREE = TopologyInstance(
    name="three", servers=3, degree=1, link_bandwidth_bytes_per_s=2.0, traffic_bytes=[[0, 1, 1], [1, 0, 1], [1, 1, 0]]
)
PARTS = [[-10, -1], [-2, 0, 0, -4, 0, 1, -5, 0, -3]]
PROOF = made(THREE, -20, 3 * 2**20 - 1, PARTS, lengths=[[1] * 9], images=[[0, 0, 2, 1]])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "proof.ddlcert"
    PROOF.save(path)
    return path


@pytest.fixture
def instance_file(tmp_path):
    path = tmp_path / "three.json"
    path.write_text(THREE.to_json())
    return path


def test_what_is_written_is_read_again(file):
    read = DesignCertificate.from_file(file)
    for name, value in vars(PROOF).items():
        assert np.array_equal(getattr(read, name), value)
        assert type(getattr(read, name)) is type(value)
    assert check_certificate(THREE, read).bound_bytes == PROOF.bound
    first = file.read_bytes()
    read.save(file)
    assert file.read_bytes() == first


def test_every_cut_and_every_addition_is_refused(file):
    packed = file.read_bytes()
    for damaged in (*(packed[:length] for length in range(len(packed))), packed + b"x", packed + packed):
        file.write_bytes(damaged)
        with pytest.raises(SolutionError):
            DesignCertificate.from_file(file)


def test_damage_never_proves_more(file):
    content, rng = gzip.decompress(file.read_bytes()), random.Random(0)
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        file.write_bytes(gzip.compress(bytes(damaged), 1))
        try:
            proven = ddlopt.check_certificate(THREE, file).bound_bytes
        except DdloptError:
            continue
        assert proven < 3


HEADERS = {
    "words": [-1, 2**39, 10**30, 1.5, True, None, "11", [], 10],
    "version": [2, 0, True, "1", None],
    "format": ["something", 1, None],
    "servers": [0, 2**30, -3],
    "instance_digest": [5, "", "0" * 64],
    "unit_exponent": [10**9, -(10**9), 0.5],
    "bound_units": [0, 2**31, 3.0],
    "another": [1],
}


@pytest.mark.parametrize("field", HEADERS)
def test_headers_that_are_none(file, field):
    line, _, arrays = gzip.decompress(file.read_bytes()).partition(b"\n")
    for value in HEADERS[field]:
        header = json.dumps({**json.loads(line), field: value}).encode()
        file.write_bytes(gzip.compress(header + b"\n" + arrays))
        with pytest.raises(SolutionError):
            ddlopt.check_certificate(THREE, file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "header does not end"),
        (b"no gzip", "cannot be read"),
        (gzip.compress(b"{" * 10**6), "header does not end"),
        (gzip.compress(b"[" * 4000 + b"\n"), "not JSON"),
        (gzip.compress(b"[]\n"), "not a JSON object"),
        (gzip.compress(b'{"format": "a", "format": "b"}\n'), "stands twice"),
        (gzip.compress(b""), "header does not end"),
        (gzip.compress(b"\xff\n"), "not JSON"),
    ],
    ids=["empty", "text", "no end", "no JSON", "list", "twice", "packed nothing", "no text"],
)
def test_contents_that_are_none(file, content, message):
    file.write_bytes(content)
    with pytest.raises(SolutionError, match=message):
        DesignCertificate.from_file(file)


def test_what_unpacks_to_more_than_is_allowed_is_refused_beforehand(file):
    line, _, arrays = gzip.decompress(file.read_bytes()).partition(b"\n")
    large = json.dumps({**json.loads(line), "words": 2**26}).encode()
    file.write_bytes(gzip.compress(large + b"\n" + arrays))
    with pytest.raises(SolutionError, match="--max-file-mb"):
        DesignCertificate.from_file(file)


def test_pipes_and_folders_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "none", "/dev/zero"):
        with pytest.raises(SolutionError, match="cannot be read"):
            DesignCertificate.from_file(path)


def test_check_on_the_command_line(call, file, instance_file):
    code, out, _ = call("check", instance_file, "--certificate", file)
    assert code == 0
    assert "more than 3145727/1048576 bytes" in out
    assert "at least 3145727/2097152 s" in out
    code, out, _ = call("check", instance_file, "--certificate", file, "--json")
    assert code == 0
    assert json.loads(out)["exact_bound_bytes"] == "3145727/1048576"
    assert call("check", "topology/all-to-all-n6-d2", "--certificate", file)[0] == 2
    assert call("check", instance_file)[0] == 2
    made(THREE, -20, 3 * 2**20, PARTS, lengths=[[1] * 9], images=[[0, 0, 2, 1]]).save(file)
    code, out, err = call("check", instance_file, "--certificate", file)
    assert (code, out) == (1, "")
    assert "do not refute" in err
    code, out, _ = call("check", instance_file, "--certificate", file, "--json")
    assert code == 1
    assert json.loads(out)["holds"] is False
    assert "do not refute" in json.loads(out)["reason"]


def test_a_file_that_is_none_is_bad_input_and_a_false_proof_an_answer(call, file, instance_file):
    file.write_bytes(b"no gzip")
    assert call("check", instance_file, "--certificate", file)[0] == 2
    with pytest.raises(SolutionError) as unreadable:
        ddlopt.check_certificate(THREE, file)
    assert not isinstance(unreadable.value, RefutedError)
    with pytest.raises(RefutedError):
        check_certificate(THREE, dataclasses.replace(PROOF, bound_units=3 * 2**20))


@pytest.mark.slow
def test_an_endless_check_is_given_up(call, tmp_path):
    """Ten million times the same weights, which close nothing: hours of work in a small file."""
    path = tmp_path / "endless.ddlcert"
    made(ddlopt.load("topology/danoint"), 0, 2**20, [[-10] * 10**7 + [-1]], lengths=[[1] * 64]).save(path)
    assert path.stat().st_size < 10**6
    for limit in (1e-9, 0.5):
        with pytest.raises(SolverError, match=r"was given up after .* s: nothing is proved, and nothing"):
            ddlopt.check_certificate("topology/danoint", path, time_limit=limit)
    code, out, says = call("check", "topology/danoint", "--certificate", path, "--time-limit", "0.5")
    assert (code, out) == (1, "")
    assert (
        says
        == "ddlopt: the check of the certificate was given up after 0.5 s: nothing is proved, and nothing refuted\n"
    )


@pytest.mark.parametrize("limit", ["0", "-1", "nan"])
def test_time_limits_that_are_none(call, file, instance_file, limit):
    code, out, says = call("check", instance_file, "--certificate", file, "--time-limit", limit)
    assert (code, out) == (2, "")
    assert says.startswith("ddlopt: the time limit must be a positive number of seconds")
    assert call("check", instance_file, file, "--time-limit", "3")[0] == 2


def test_certify_on_the_command_line(call, tmp_path):
    file = tmp_path / "proof.ddlcert"
    code, out, _ = call("certify", "topology/all-to-all-n5-d2", "--method", "branch-and-bound", "--out", file)
    assert code == 0
    assert "every design loads some link with more than" in out
    assert call("check", "topology/all-to-all-n5-d2", "--certificate", file)[0] == 0
    for arguments in (["--method", "link-exchange", "--out", file], ["--out", tmp_path / "no" / "file"]):
        assert call("certify", "topology/all-to-all-n5-d2", *arguments)[0] == 2


def test_other_problems_have_no_certificates():
    with pytest.raises(SolutionError, match="is no certificate of 'abilene-n11-averaging'"):
        ddlopt.check_certificate("gossip/abilene-n11-averaging", PROOF)
