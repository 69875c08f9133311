"""Shuffled loaders that are saved, and states as a checkpoint would hold them."""

from __future__ import annotations

import json
from typing import Any

import brimful as bf
import stepped


def make(lengths: Any = None, corpus: bf.Corpus | None = None, **how: Any) -> bf.DataLoader:
    return stepped.make(lengths if corpus is None else corpus, **{"shuffle": True, **how})


def saved(loader: bf.DataLoader) -> Any:
    return json.loads(json.dumps(loader.state_dict()))
