"""Facts on the terminal: tables, small plots, progress bars."""
