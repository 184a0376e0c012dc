"""Synthetic data with a known right answer, for tests, examples and studies."""
