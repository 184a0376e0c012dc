"""Measurements of the whole program: installation, start, kills, plans, and the state of its code."""
