"""TopologyFinder, and its parts by the names of its paper."""
