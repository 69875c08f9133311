"""Document-causal block masks by torch's own means. Each takes cu_seqlens, int32 [segments + 1], a
tensor in host memory, and returns a BlockMask of blocks of 128, q lists included.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch.nn.attention.flex_attention import BlockMask, create_block_mask

BLOCK = 128


def document_numbers(cu_seqlens: torch.Tensor) -> torch.Tensor:
    """Of each slot, int32."""
    numbers = torch.arange(len(cu_seqlens) - 1, dtype=torch.int32)
    return numbers.repeat_interleave(cu_seqlens.diff(), output_size=int(cu_seqlens[-1]))


def by_predicate(cu_seqlens: torch.Tensor, create: Any = create_block_mask) -> BlockMask:
    """What most people do: every pair of slots is asked about."""
    document = document_numbers(cu_seqlens)

    def see(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (q >= k) & (document[q] == document[k])

    total = len(document)
    return create(see, None, None, total, total, device="cpu", BLOCK_SIZE=BLOCK)


@cache
def _compiled(function: Any) -> Any:
    return torch.compile(function)


def by_compiled_predicate(cu_seqlens: torch.Tensor) -> BlockMask:
    return by_predicate(cu_seqlens, _compiled(create_block_mask))


def _ordered(blocks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """[R, C] of bools as counts [1, 1, R] and indices [1, 1, R, C]."""
    counts = blocks.sum(-1, dtype=torch.int32)
    indices = blocks.to(torch.int8).argsort(dim=-1, descending=True, stable=True).to(torch.int32)
    return counts[None, None], indices[None, None].contiguous()


def _by_bounds(document: torch.Tensor) -> list[torch.Tensor]:
    """The trick of block-level bounds: documents ascend, so the first and the last number of each
    block of slots say whether two blocks share a document, and whether they are all of one. For
    lengths that are a multiple of the block.
    """
    blocks = document.view(-1, BLOCK)
    first, last = blocks[:, 0], blocks[:, -1]
    at = torch.arange(len(blocks))
    before = at[:, None] > at
    full = before & (last[:, None] == first)
    partial = ((before & (first[:, None] <= last)) | (at[:, None] == at)) & ~full
    return [part for of in (partial, full, partial.T, full.T) for part in _ordered(of)]


def _mask_of(cu_seqlens: torch.Tensor, lists: Any) -> BlockMask:
    document = document_numbers(cu_seqlens)

    def see(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (q >= k) & (document[q] == document[k])

    total = len(document)
    kv, q = lists[:4], lists[4:]
    return BlockMask((total, total), *kv, *q, BLOCK_SIZE=(BLOCK, BLOCK), mask_mod=see)


def by_bounds(cu_seqlens: torch.Tensor) -> BlockMask:
    return _mask_of(cu_seqlens, _by_bounds(document_numbers(cu_seqlens)))


def by_compiled_bounds(cu_seqlens: torch.Tensor) -> BlockMask:
    return _mask_of(cu_seqlens, _compiled(_by_bounds)(document_numbers(cu_seqlens)))


def from_kv_blocks(mask: BlockMask) -> BlockMask:
    """What torch takes to find the q lists when it is given the kv lists."""
    return BlockMask.from_kv_blocks(
        mask.kv_num_blocks,
        mask.kv_indices,
        mask.full_kv_num_blocks,
        mask.full_kv_indices,
        BLOCK_SIZE=BLOCK,
        mask_mod=mask.mask_mod,
        seq_lengths=mask.seq_lengths,
    )
