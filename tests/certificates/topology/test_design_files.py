"""Files of proofs for designs: what is written is read again, and nothing else is; and figures at their limits."""

import json
import zlib
from itertools import combinations
from math import comb

import numpy as np
import pytest
from topology_cases import job

from ddlopt.certificates.topology import DesignCertificate, check_certificate
from ddlopt.certificates.topology.colouring import colourable
from ddlopt.certificates.topology.format import BRANCH, END, LEAST_EXPONENT, MOST_EXPONENT
from ddlopt.certificates.topology.statement import neighbour_sets, statement_of
from ddlopt.models.errors import NotApplicableError, SolutionError

LONGEST = 4096
"""Bytes of a header."""
ARRAYS = ("words", "part_words", "lengths", "prices", "images")


def small():
    """Two servers; nothing in it proves anything."""
    return DesignCertificate(
        "pair", "0" * 64, -20, 7, np.array([BRANCH, 0, END], np.int32), np.array([3], np.uint32),
        np.arange(8, dtype=np.uint16).reshape(2, 4), np.arange(-3, 3).reshape(2, 3), np.array([[0, 1, 0]], np.int32),
    )  # fmt: skip


def gzipped(content):
    pack = zlib.compressobj(6, wbits=31)
    return pack.compress(content) + pack.flush()


def test_what_is_written_is_read_again(tmp_path):
    small().save(tmp_path / "proof")
    found = DesignCertificate.from_file(tmp_path / "proof")
    for name in ("instance", "instance_digest", "unit_exponent", "bound_units"):
        assert getattr(found, name) == getattr(small(), name)
    for name in ARRAYS:
        one, other = getattr(found, name), getattr(small(), name)
        assert (one.dtype, one.tolist()) == (other.dtype, other.tolist())


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"format": "x"}, "its format is not"),
        ({"version": 2}, "it is not of version 1"),
        ({"more": 1}, "must have these fields"),
        ({"servers": 3}, "bytes are missing at its end"),
        ({"servers": 1}, "something follows its end"),
        ({"images": 0}, "something follows its end"),
        ({"words": -1}, "words in its header is out of range"),
        ({"words": True}, "words in its header is not a whole number"),
        ({"instance": 3}, "instance in its header is not text"),
    ],
)
def test_other_headers_are_refused(tmp_path, change, line):
    small().save(tmp_path / "proof")
    header, _, arrays = zlib.decompress((tmp_path / "proof").read_bytes(), wbits=31).partition(b"\n")
    (tmp_path / "other").write_bytes(gzipped(json.dumps(json.loads(header) | change).encode() + b"\n" + arrays))
    with pytest.raises(SolutionError, match=line):
        DesignCertificate.from_file(tmp_path / "other")


def test_only_one_whole_certificate_is_read(tmp_path):
    small().save(tmp_path / "proof")
    packed = (tmp_path / "proof").read_bytes()
    content = zlib.decompress(packed, wbits=31)
    header, _, arrays = content.partition(b"\n")
    for longer, fits in ((LONGEST, True), (LONGEST + 1, False)):
        (tmp_path / "long").write_bytes(gzipped(header.ljust(longer) + b"\n" + arrays))
        if fits:
            assert DesignCertificate.from_file(tmp_path / "long").bound == small().bound
        else:
            with pytest.raises(SolutionError, match="its header does not end"):
                DesignCertificate.from_file(tmp_path / "long")
    for other in (
        packed + b"x",
        packed + packed,
        gzipped(content + b"x"),
        packed[:-1],
        content,
    ):
        (tmp_path / "other").write_bytes(other)
        with pytest.raises(SolutionError, match=r"is no certificate|cannot be read"):
            DesignCertificate.from_file(tmp_path / "other")


@pytest.mark.parametrize("exponent", [LEAST_EXPONENT - 1, LEAST_EXPONENT, MOST_EXPONENT, MOST_EXPONENT + 1])
def test_units_may_be_as_small_and_as_large_as_double_precision_has_them(exponent):
    instance = job([[0.0, 1], [1, 0]], 1)
    given = DesignCertificate(
        "", instance.digest, exponent, 1, small().words, small().part_words,
        np.ones((1, 4), np.uint16), np.zeros((1, 3), np.int64), np.zeros((0, 3), np.int32),
    )  # fmt: skip
    with pytest.raises(SolutionError) as refused:
        check_certificate(instance, given)
    assert ("unit is not 2^e" in str(refused.value)) == (not LEAST_EXPONENT <= exponent <= MOST_EXPONENT)


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"degree": 8}, comb(12 + 8 - 2, 8)),
        ({"degree": 8, "host_forwarding": False}, sum(comb(12 - 2 + size, size) for size in range(9))),
        ({"degree": 2}, None),
        ({"degree": 2, "parallel_links": False}, None),
    ],
)
def test_neighbour_sets_are_counted_before_they_are_made(options, count):
    instance = job(np.ones((12, 12)) - np.eye(12), **options)
    if count is None:
        assert statement_of(instance, -20).sets.shape[1] == len(neighbour_sets(instance, 0))
    else:
        with pytest.raises(NotApplicableError, match=f"has {count} neighbour sets"):
            statement_of(instance, -20)


def test_planes_hold_half_of_the_servers_at_most():
    """Nine servers, all joined: each of eight planes has four links, and there are 36."""
    assert not colourable(list(combinations(range(9), 2)), 8)
    assert colourable(list(combinations(range(8), 2)), 7)
