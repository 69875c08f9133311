"""Compiled flex_attention under brimful's block masks: attention of each document by itself, and
one compilation however documents vary. (Not compiled it would evaluate the mask function everywhere
and look at no list.)
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
import torch._dynamo
from torch._dynamo.utils import counters
from torch.nn.attention.flex_attention import flex_attention

import brimful as bf
from mask_truth import offsets, pairs

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
LENGTHS = [
    [[100, 1, 0, 155, 44]],
    [[300]],
    [[128, 128, 44]],
    [[1] * 40 + [260]],
]
ROWS = [
    [[100, 200], [300]],
    [[128, 172], [1, 299]],
    [[0, 300], [150, 150]],
]


def attend(mask: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = (q @ k.transpose(-1, -2)) / q.shape[-1] ** 0.5
    return torch.softmax(scores.masked_fill(~torch.from_numpy(mask), -torch.inf), -1) @ v


@pytest.mark.parametrize(("window", "prefix"), [(None, None), (70, None), (None, 33), (70, 33)])
@pytest.mark.parametrize(("batches", "block_size"), [(LENGTHS, 128), (ROWS, 64)], ids=["1", "2"])
def test_compiled_attention_is_that_of_each_document_and_compiled_once(
    batches: Any, window: int | None, prefix: int | None, block_size: int
) -> None:
    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(flex_attention)
    for seed, rows in enumerate(batches):
        torch.manual_seed(seed)
        cus = [offsets(row) for row in rows]
        prefixes = None if prefix is None else [[prefix] * len(row) for row in rows]
        mask = bf.masks.block_mask(cus, block_size, window=window, prefix_lengths=prefixes)
        q, k, v = torch.randn(3, len(rows), 2, 300, 16)
        found = compiled(q, k, v, block_mask=mask)
        for i, cu in enumerate(cus):
            seen = pairs(cu, window=window, prefixes=None if prefixes is None else prefixes[i])
            assert torch.allclose(found[i], attend(seen, q[i], k[i], v[i]), atol=2e-6)
        # Documents by themselves, where there is nothing else to see.
        if window is None and prefix is None:
            for i, cu in enumerate(cus):
                for begin, end in itertools.pairwise(cu):
                    part = (slice(i, i + 1), slice(None), slice(begin, end))
                    if begin < end:
                        alone = torch.nn.functional.scaled_dot_product_attention(
                            q[part], k[part], v[part], is_causal=True
                        )
                        assert torch.allclose(found[part], alone, atol=2e-6)
    assert counters["stats"]["unique_graphs"] == 1


def test_lists_decide_in_compiled_attention() -> None:
    """So the test above is one of the lists: with one block left out, the result is another."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 1, 384, 16)
    compiled = torch.compile(flex_attention)
    right = compiled(q, k, v, block_mask=bf.masks.block_mask([0, 384]))
    wrong = bf.masks.block_mask([0, 384])
    wrong.full_kv_num_blocks[..., 2] -= 1
    assert not torch.allclose(right, compiled(q, k, v, block_mask=wrong), atol=1e-3)
    assert np.isfinite(right.numpy()).all()


def test_c14_a_change_in_one_document_changes_no_bit_of_another() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    compiled = torch.compile(flex_attention)
    mask = bf.masks.block_mask(bf.masks.cu_seqlens([190, 110]))
    q, k, v = torch.randn(3, 1, 1, 300, 16)
    before = compiled(q, k, v, block_mask=mask)
    for tensor in (q, k, v):
        tensor[..., 5, :] = torch.randn(16)
    after = compiled(q, k, v, block_mask=mask)
    assert not torch.equal(before[..., :190, :], after[..., :190, :])
    assert torch.equal(before[..., 190:, :], after[..., 190:, :])
