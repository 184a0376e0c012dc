"""Extreme multi-label classification."""
