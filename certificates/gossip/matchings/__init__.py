"""Proofs for plans of matchings: a tree of regions, and vectors of whole numbers at its leaves."""

from ddlopt.certificates.gossip.matchings.tree import MatchingsCertificate

__all__ = ["MatchingsCertificate"]

OWN = "tree:MatchingsCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""
