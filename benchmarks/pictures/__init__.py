"""What the pictures of docs/methods show, computed on the bundled data."""
