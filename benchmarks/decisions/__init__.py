"""Benchmarks of decisions: which labels rows are given."""
