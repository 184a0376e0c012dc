"""Measurements of `longtail serve`."""
