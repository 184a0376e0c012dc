"""Growing a label tree: labels clustered by their vectors, balanced or by k-means."""
