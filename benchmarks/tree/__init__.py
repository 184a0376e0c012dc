"""Benchmarks of the label tree."""
