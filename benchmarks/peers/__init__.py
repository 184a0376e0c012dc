"""The parts of `tree_vs_peers.py`: data, environments, one measurement, tables and verdicts."""
