"""Benchmarks of finding the labels of rows from the labels of groups."""
