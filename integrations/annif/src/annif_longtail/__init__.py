"""Backends of Annif that train and ask longtail: `longtail_tree` and `longtail_hybrid`.

Annif has no entry points for backends. It imports the class that the variable ANNIF_CONFIG names, though, and importing
this package registers the backends: `ANNIF_CONFIG=annif_longtail.ProductionConfig annif list-projects`.
"""

from __future__ import annotations

from annif import default_config

from annif_longtail.register import register

__version__ = "0.1.0"
__all__ = [
    "Config",
    "DevelopmentConfig",
    "ProductionConfig",
    "TestingConfig",
    "TestingInitializeConfig",
    "register",
]

register()


class Config(default_config.Config):
    """Annif's settings for its commands."""


class ProductionConfig(default_config.ProductionConfig):
    """Annif's settings for its server: all projects are loaded at the start."""


class DevelopmentConfig(default_config.DevelopmentConfig):
    """Annif's settings for development."""


class TestingConfig(default_config.TestingConfig):
    """Annif's settings for its own tests."""


class TestingInitializeConfig(default_config.TestingInitializeConfig):
    """Annif's settings for its own tests, with projects loaded at the start."""
