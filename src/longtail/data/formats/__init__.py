"""File formats: every known file becomes a Dataset through `io.read`, and every Dataset a file through `io.write`."""
