"""Benchmarks of reading files."""
