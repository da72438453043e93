"""The linear relaxation of a slot over whole mappings of jobs, rounded at random."""
