"""Other ways to make batches of tokens, as people write them, to measure the loader against."""
