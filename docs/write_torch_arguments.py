"""Writes docs/torch_arguments.md: what becomes of torch's arguments and attributes on either path.

    python docs/write_torch_arguments.py

Arguments come from the table that `explain()` tells from. Attributes are tried out on two loaders.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np

import brimful as bf
from brimful.drop_in.path import choose_path
from brimful.drop_in.torch_arguments import TORCH_ARGUMENTS

PAGE = Path(__file__).with_name("torch_arguments.md")

# And a value that each may be set to.
ATTRIBUTES: dict[str, Any] = {
    "dataset": [],
    "batch_size": 2,
    "sampler": None,
    "batch_sampler": None,
    "drop_last": True,
    "num_workers": 1,
    "collate_fn": list,
    "pin_memory": False,
    "timeout": 1,
    "worker_init_fn": None,
    "multiprocessing_context": None,
    "generator": None,
    "prefetch_factor": 3,
    "persistent_workers": True,
    "pin_memory_device": "",
    "in_order": True,
}

TEXT = """\
# torch's arguments, one by one

`bf.DataLoader` takes every argument of `torch.utils.data.DataLoader`, those of `torch` 2.6 and
newer, in its place and by its name. A dataset takes one of two paths, and `loader.explain()` says
which, and why. This page is written by `python docs/write_torch_arguments.py`; a test compares it
with what the loaders do.

## Which path

The rule is one function, `brimful.drop_in.path.choose_path`:

{rule}

On torch's path the loader is torch's own DataLoader, by a subclass that keeps time and states:
`isinstance(loader, torch.utils.data.DataLoader)` is true, so that Accelerate and Lightning treat
it as any other. A native loader is no instance of torch's class, so that they leave it alone: it
has dealt its ranks by itself. Both are instances of `bf.DataLoader`, and a class that you derive
from it is served by the same rule: what its `__init__` gives to the base's decides.

## Arguments

"Delegated": torch's own code does with it what it always did.

{arguments}

## Attributes

All can be read on both paths, with torch's meaning. What may be set takes effect with the next
iteration.

{attributes}

## On torch's path

- Items, order, seeds of workers, errors and warnings are torch's.
  `tests/test_torch_construction.py` and `tests/test_torch_iteration.py` run the same programs
  with torch's class and compare what comes, and where they leave the global generators.
- `loader.stats()` counts batches and tells the time blocked in `next()`, without that of each
  first batch, which it tells apart.
- `loader.state_dict()` and `load_state_dict()` work at any moment, also before the first batch. A
  state counts the batches taken out and keeps the generators that the order was drawn from: as
  JSON 3 to 14 KB. Batches of a map-style dataset that were delivered are passed over by their
  indices and not read again. An iterable dataset with `state_dict()` and `load_state_dict()` of
  its own, or an iterator that has them, is asked where no workers read ahead; any other is read
  again from its beginning, and what was delivered is thrown away.
- A sampler is understood by its `generator`, its `state_dict()` and `load_state_dict()`, or its
  `epoch` and `set_epoch()`; one that hides what it draws from gives a warning on resume, for its
  order is another one then. Random numbers that a dataset draws for its items are not part of a
  state.
- The number of workers may change; with an iterable dataset that several workers share, that
  gives a warning, for the order of its batches changes. With `in_order=False` batches of a
  map-style dataset still come once each.

## Measured

`pytest bench/bench_torch_path.py`, on 2 cores of an AMD EPYC that other programs kept busy too,
Linux 6.18, Python 3.11.7, torch 2.13.0 (CPU), datasets 5.2.0: take them as ratios within one run.

- What torch's path adds: `next()` of torch's class took 39.0 us of the processor, through brimful
  39.6 us, 1.6 % more (tenth percentiles). Rows of 1,024 tokens, 8 a batch, `default_collate`, no
  workers.
- The native path beside torch's class, one and the same `collate_fn` (it pads 8 documents) on one
  Hugging Face dataset, an epoch of 4,000 documents (2,189,168 tokens), least of 5:

| items | workers or threads | torch | native |
| --- | ---: | ---: | ---: |
| dicts of lists | 0 | 2.30 s | 1.65 s |
| dicts of lists | 2 | 3.55 s | 2.64 s |
| dicts of tensors | 0 | 1.04 s | 0.33 s |
| dicts of tensors | 2 | 6.19 s | 0.09 s |

With lists most of the time is that of the function, which makes tensors of them.
"""


def page() -> str:
    """The text of the page."""
    documentation = inspect.getdoc(choose_path) or ""
    rule = documentation[documentation.index("1. ") : documentation.index("Args:")].strip()
    rows = [f"| `{a.name}` | {a.meaning} | {a.native} | {a.delegated} |" for a in TORCH_ARGUMENTS]
    arguments = ["| argument | meaning | native | delegated |", "| --- | --- | --- | --- |", *rows]
    return TEXT.format(
        rule=rule, arguments="\n".join(arguments), attributes="\n".join(attribute_rows())
    )


def attribute_rows() -> list[str]:
    """Whether each may be set on a loader of either path."""
    documents = [np.arange(3)]
    loaders = [
        bf.DataLoader(documents, seq_len=4, num_workers=1),
        bf.DataLoader(documents, num_workers=1),
    ]
    rows = ["| attribute | native | torch's path |", "| --- | --- | --- |"]
    for name, value in ATTRIBUTES.items():
        cells = [_setting(loader, name, value) for loader in loaders]
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    return rows


def _setting(loader: Any, name: str, value: Any) -> str:
    getattr(loader, name)
    try:
        setattr(loader, name, value)
    except ValueError:
        return "read only"
    return "set"


if __name__ == "__main__":
    PAGE.write_text(page())
