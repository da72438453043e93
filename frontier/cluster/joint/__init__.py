"""The problem ``cluster/joint``: what is lost where nothing is known of a job before it arrives."""
