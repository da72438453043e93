"""Clusters that jobs run on: servers, accelerators, networks, optics and costs of compression, from one small file.

A cluster is TOML, in the units of data sheets (Gb/s, GB, µs). :func:`load` reads one, bundled or your own, and
:func:`applied` turns it into the options of a generator or a reader, so that all of them understand the same file.
"""

from ddlopt.instances.clusters.file import Cluster, load, names
from ddlopt.instances.clusters.nccl_tests import measured
from ddlopt.instances.clusters.options import applied

__all__ = ["Cluster", "applied", "load", "measured", "names"]
