"""Cards of facts, for notebooks, made of the pieces in `longtail.notebook`."""
