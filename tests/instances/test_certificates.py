"""The bundled certificates: the checker accepts each of them, and the index says of them what is so."""

import hashlib

import pytest

import ddlopt
from ddlopt import instances
from ddlopt.instances.library import certificates
from ddlopt.solvers import proofs

LARGEST_BYTES, ALL_BYTES = 200_000, 20_000_000
KNOWN = certificates.entries()
BUNDLED = sorted(name for name in KNOWN if certificates.file_of(name) is not None)
QUICK = [name for name in BUNDLED if KNOWN[name].get("checking_s", 1) < 0.02][::6]


def holds(name):
    instance, entry, path = instances.load(name), KNOWN[name], certificates.file_of(name)
    assert entry["instance_digest"] == instance.digest
    assert entry["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    proven = ddlopt.check_certificate(instance, path)
    objective = ddlopt.check(instance, instances.best(name), exact=True).objective
    sign = 1 if instance.sense == "minimize" else -1
    gap = sign * (objective - proven.bound)
    # Certificates made without anything to spare lose the last digit on another processor.
    assert 0 <= gap <= 1.000001e-4 * abs(objective), name
    assert proven.kind == entry["kind"]


@pytest.mark.parametrize("name", QUICK)
def test_a_sample_of_certificates_holds(name):
    holds(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", BUNDLED)
def test_all_certificates_hold(name):
    holds(name)


def test_files_are_small_and_in_the_index():
    files = sorted((*certificates.FOLDER.glob("*.gz"), *certificates.FOLDER.glob("*.ddlcert")))
    assert files == sorted(certificates.file_of(name) for name in BUNDLED)
    assert sum(path.exists() for name in KNOWN for path in certificates.paths_of(name)) == len(BUNDLED)
    sizes = [file.stat().st_size for file in files]
    assert max(sizes) <= LARGEST_BYTES
    assert sum(sizes) <= ALL_BYTES


def test_the_index_is_of_bundled_instances():
    assert set(KNOWN) <= set(instances.names())
    for name, entry in KNOWN.items():
        assert entry["evidence"] in ("combinatorial", "certificate", "solver"), name
        assert (entry["evidence"] == "solver") == ("reason" in entry), name


def test_each_certificate_is_of_its_own_instance():
    for name in QUICK[:5]:
        instance = instances.load(name)
        certificate = proofs.read(certificates.file_of(name), instance)
        assert certificate.instance_digest == instance.digest


def test_labels_are_of_the_instance_that_was_proven():
    told = {"combinatorial": "combinatorial, exact", "certificate": "exact certificate"}
    for name, entry in KNOWN.items():
        label = certificates.label(name, entry["instance_digest"])
        assert label == told.get(entry["evidence"], "up to floating point")
        assert certificates.label(name, "0" * 64) == "up to floating point"
    assert certificates.label("topology/none", "0" * 64) == "up to floating point"
