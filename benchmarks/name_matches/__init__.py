"""Benchmarks of labels found by their names."""
