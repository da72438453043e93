"""Networks of the Internet Topology Zoo."""
