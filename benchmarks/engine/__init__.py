"""The engine: models trained on clusters, lost nodes and drivers, other engines."""
