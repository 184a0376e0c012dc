"""Benchmarks of turning texts into rows of features."""
