"""Benchmarks of the hybrid, and of what a user would pick instead of it."""
