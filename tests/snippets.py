"""Python examples of README and of the pages in docs/, taken out and run as a reader would."""

from __future__ import annotations

import re
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers.modeling_outputs import CausalLMOutput

import brimful as bf
from brimful.config import LoaderConfig

ROOT = Path(__file__).parents[1]


class Model(torch.nn.Module):
    """Stands for the reader's model: takes a batch as keywords and returns a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(()))

    def forward(self, *, use_cache: bool, **batch: Any) -> CausalLMOutput:
        assert not use_cache
        assert set(batch) >= set(LoaderConfig.fields)
        return CausalLMOutput(loss=self.weight * batch["input_ids"].float().mean())


def blocks(text: str) -> list[str]:
    """The code of each example, also of those that stand indented in a list or a tab."""
    found = re.findall(r"^( *)```python\n(.*?)^\1```", text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(code) for _, code in found]


def run_blocks(page: Path) -> None:
    """Runs a page's examples one after the other in the current folder, where shards lie."""
    for folder in ("shards", "web", "code"):
        with bf.ShardWriter(folder, dtype="uint16") as writer:
            for i in range(64):
                writer.add(np.full(512, i, np.uint16))
    namespace: dict[str, Any] = {"__name__": page.stem, "model": Model()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in blocks(page.read_text()):
            exec(compile(block, page.name, "exec"), namespace)
