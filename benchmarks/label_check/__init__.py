"""Benchmarks of label checks: which labels of a dataset look wrong."""
