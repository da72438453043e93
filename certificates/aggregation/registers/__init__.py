"""Placements in registers: proofs by going through all of them."""
