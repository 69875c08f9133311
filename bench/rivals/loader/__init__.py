"""Other ways to make batches of tokens, as people write them, to measure the loader against.

`jobs()` gives all of them, also those whose package is not installed: their rows then say so.
requirements.txt names the packages.
"""

from rivals.loader import (
    brimful_rows,
    fixed_rows,
    flat,
    google_grain,
    hf,
    limit,
    litdata,
    megatron,
    mosaic,
    olmo_core,
)
from rivals.loader.job import TASKS, Job


def jobs() -> list[Job]:
    modules = (
        limit,
        brimful_rows,
        fixed_rows,
        flat,
        litdata,
        mosaic,
        google_grain,
        megatron,
        olmo_core,
        hf,
    )
    found = [job for module in modules for job in module.jobs()]
    return sorted(found, key=lambda job: list(TASKS).index(job.task))
