"""Views with masks: each document attends as it would alone, whatever the kernel."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from truth import corpus_of, listed


def batches():
    lengths = [3, 2, 4]
    settings = {"packing": "best_fit", "num_workers": 0, "batch_size": 2, "seq_len": 5}
    (rows,) = bf.DataLoader(corpus_of(lengths), **settings)
    (flat,) = bf.DataLoader(corpus_of(lengths), layout="varlen", **settings)
    padded = bf.flatten([np.arange(n) for n in lengths], align=4, pad_to_multiple_of=8)
    fixed = bf.flatten([np.arange(n) for n in lengths], max_segments=7)
    (fixed_rows,) = bf.DataLoader(corpus_of(lengths), max_segments=4, **settings)
    return [rows, flat, padded, fixed, fixed_rows]


CASES = pytest.mark.parametrize(
    "batch", batches(), ids=["rows", "varlen", "align", "fixed", "fixed rows"]
)


def dense_truth(batch, window=None, prefix_lengths=None):
    """By the definition, pair by pair."""
    rows, width = batch["input_ids"].shape
    ends = batch.cu_seqlens_host[: batch.num_segments + 1]
    mask = np.zeros((rows, 1, width, width), bool)
    for s, (begin, end) in enumerate(itertools.pairwise(ends)):
        row, first = divmod(int(begin), width)
        last = first + int(end - begin)
        prefix = 0 if prefix_lengths is None else int(prefix_lengths[s])
        for q in range(first, last):
            for k in range(first, last):
                near = window is None or q - k < window
                mask[row, 0, q, k] = (k <= q and near) or k < first + prefix
    return torch.from_numpy(mask)


@CASES
@pytest.mark.parametrize("window", [None, 1, 2])
@pytest.mark.parametrize("prefixed", [False, True])
def test_masks_are_those_of_the_segments(batch, window, prefixed):
    prefix = np.minimum(batch.lengths, 2) if prefixed else None
    settings = {"window": window, "prefix_lengths": prefix}
    truth = dense_truth(batch, window, prefix)
    assert batch.dense_mask(**settings).equal(truth)
    assert batch.sdpa(**settings)["attn_mask"].equal(truth)
    added = batch.dense_mask(torch.bfloat16, **settings)
    assert added.dtype == torch.bfloat16
    assert added.equal(torch.zeros_like(added).masked_fill(~truth, -torch.inf))
    # What is evaluated where the batch is equals what is written on the host.
    assert batch._dense_on_device(bool, window, prefix).equal(truth)
    assert batch._dense_on_device(torch.bfloat16, window, prefix).equal(added)
    block_mask = batch.block_mask(**settings)
    rows, width = batch["input_ids"].shape
    assert block_mask.shape == (rows, 1, width, width)
    from torch.nn.attention.flex_attention import create_mask

    assert create_mask(block_mask.mask_mod, rows, 1, width, width, device="cpu").equal(truth)


def test_c13_no_row_sees_another():
    rows, *_ = batches()
    assert rows.dense_mask().sum() == 6 + 3 + 10 + 1
    assert rows.dense_mask().shape == (2, 1, 5, 5)


def test_c14_c28_as_many_pairs_as_documents_have():
    for lengths, pairs in (([4, 2], 13), ([4, 2, 4], 23), ([1], 1)):
        batch = bf.flatten([np.arange(n) for n in lengths])
        assert batch.dense_mask().sum() == pairs
        assert batch.flex()["block_mask"].mask_mod is not None


@given(
    lengths=st.lists(st.integers(1, 9), min_size=2, max_size=6),
    changed=st.integers(0, 8),
)
def test_c14_a_change_in_one_document_leaves_the_others_bit_by_bit(lengths, changed):
    total = sum(lengths)
    batch = bf.flatten([np.arange(n) for n in lengths])
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, total, 8)
    attend = torch.nn.functional.scaled_dot_product_attention
    before = attend(q, k, v, **batch.sdpa())
    changed %= lengths[0]
    for x in (q, k, v):
        x[:, :, changed] += 1
    after = attend(q, k, v, **batch.sdpa())
    assert before[:, :, lengths[0] :].equal(after[:, :, lengths[0] :])
    assert not before[:, :, changed].equal(after[:, :, changed])


def test_c16_c17_a_tail_sees_itself_and_nothing_else():
    batch = bf.flatten([[1, 2, 3]], pad_to_multiple_of=8)
    mask = batch.dense_mask()[0, 0]
    assert mask[3:, :3].sum() == mask[:3, 3:].sum() == 0
    assert mask.any(-1).all()
    assert mask.sum() == 6 + 15


def test_c25_masks_ask_no_device():
    for host in batches():
        batch = host.to("meta")
        block_mask = batch.flex(window=2)["block_mask"]
        assert block_mask.kv_indices.device.type == "meta"
        assert batch.dense_mask().shape == host.dense_mask().shape
        assert batch.sdpa(torch.float16)["attn_mask"].dtype == torch.float16
        with torch.device("meta"):  # torch's default device
            assert batch.dense_mask(torch.float16).shape == host.dense_mask().shape
            assert torch.equal(host.dense_mask(torch.bool), host.dense_mask())


def test_block_sizes_go_through():
    batch = bf.flatten([np.arange(300), np.arange(100)])
    block_mask = batch.block_mask((256, 128))
    assert block_mask.BLOCK_SIZE == (256, 128)
    assert block_mask.kv_num_blocks.shape == (1, 1, 2)


@CASES
def test_what_does_not_fit_is_refused(batch):
    for view in (batch.flex, batch.block_mask, batch.sdpa, batch.dense_mask):
        with pytest.raises(bf.PlanError, match="window"):
            view(window=0)
        with pytest.raises(bf.PlanError, match="prefix"):
            view(prefix_lengths=[1] * (batch.num_segments + 9))
    with pytest.raises(bf.PlanError, match="dtype"):
        batch.dense_mask(torch.int32)
    with pytest.raises(bf.PlanError, match="dtype"):
        batch.to("meta").dense_mask(torch.int32)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
def test_flex_attention_is_compiled_once_while_documents_vary():
    from torch._dynamo.utils import counters
    from torch.nn.attention.flex_attention import flex_attention

    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(flex_attention)
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 256, 16)
    generator = np.random.default_rng(0)
    documents = [np.arange(int(n)) for n in generator.integers(1, 200, 60)]
    loader = bf.DataLoader(bf.open(documents), batch_size=2, seq_len=256, drop_last=True)
    graphs, segments = [], set()
    for batch in loader:
        out = compiled(q, k, v, **batch.flex())
        wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, **batch.sdpa())
        torch.testing.assert_close(out, wanted, atol=1e-5, rtol=1e-4)
        graphs.append(counters["stats"]["unique_graphs"])
        segments.add(batch.num_segments)
    assert len(segments) > 3
    assert set(graphs) == {1}
    assert listed(batch["input_ids"].shape) == [2, 256]
