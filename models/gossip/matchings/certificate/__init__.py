"""Proofs for plans of matchings: a tree of regions, and vectors of whole numbers at its leaves."""

from ddlopt.models.gossip.matchings.certificate.tree import MatchingsCertificate

__all__ = ["MatchingsCertificate"]
