"""What notebooks show of facts: cards made of the pieces in `longtail.notebook`."""
