"""Benchmarks of the one-vs-all classifier."""
