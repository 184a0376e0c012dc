"""Measurements of model folders."""
