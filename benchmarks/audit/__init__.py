"""Benchmarks of audits of output layers."""
