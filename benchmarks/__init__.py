"""Programs that measure longtail and its peers; README.md tells what each does."""
