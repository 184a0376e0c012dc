"""Benchmarks of monitoring."""
