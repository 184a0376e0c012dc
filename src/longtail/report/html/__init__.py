"""Facts as self-contained HTML pages."""
