"""Other libraries behind one interface, each run in an environment of its own."""
