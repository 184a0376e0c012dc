"""Settings for all tests: property tests draw the same examples every time, and a slow machine is no failure."""

from hypothesis import settings

settings.register_profile("longtail", deadline=None, derandomize=True)
settings.load_profile("longtail")
