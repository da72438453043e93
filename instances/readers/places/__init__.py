"""Readers of where hosts are: Slurm's topologies, Kueue's objects, lists of nodes, numbers of hosts by rack."""
