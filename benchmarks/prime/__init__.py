"""Benchmarks of PRIME."""
