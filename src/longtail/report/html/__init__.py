"""Self-contained HTML pages, rendered from facts by the templates in `templates/`."""
