"""Text to shards: tokenizes text files, JSON lines and parquet, and records their origin."""

from brimful.prepare.pipeline import Prepared, Progress, prepare

__all__ = ["Prepared", "Progress", "prepare"]
