"""Benchmarks of networks with a narrow output layer."""
