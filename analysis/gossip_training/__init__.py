"""Decentralised SGD that is really run, under policies of exchange, and studies of them."""
