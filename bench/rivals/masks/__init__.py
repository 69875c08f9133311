"""Other ways to the same masks and metadata, written for speed where they are ours to write."""
