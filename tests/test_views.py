"""Views of a batch: what each kernel is handed, against the segments of the batch."""

import pickle
import sys
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pytest
import torch

import brimful as bf
from truth import IGNORE, corpus_of, listed


def only_batch(lengths, **settings):
    settings = {"packing": "best_fit", "num_workers": 0, **settings}
    (batch,) = bf.DataLoader(corpus_of(lengths), **settings)
    return batch


def rows_and_flat():
    """The same documents as rows and as varlen, with a tail and without."""
    lengths = [3, 2, 4]
    return [
        only_batch(lengths, batch_size=2, seq_len=5),
        only_batch(lengths, batch_size=2, seq_len=5, layout="varlen"),
        only_batch(lengths, batch_size=2, seq_len=5, layout="varlen", tail="keep"),
        bf.flatten([np.arange(n) for n in lengths], pad_to_multiple_of=4),
    ]


@pytest.mark.parametrize("batch", rows_and_flat(), ids=["rows", "varlen", "tail", "flatten"])
def test_c13_views_flatten_rows_and_keep_their_starts(batch):
    view = batch.transformers()
    total = int(batch.cu_seqlens[-1])
    for name in ("input_ids", "labels", "position_ids"):
        assert view[name].shape == (1, total)
        assert view[name].data_ptr() == batch[name].data_ptr()  # nothing is copied
    assert listed(view["cu_seq_lens_q"])[:4] == [0, 3, 5, 9]
    assert view["cu_seq_lens_q"] is view["cu_seq_lens_k"] is batch.cu_seqlens
    begins = listed(batch.cu_seqlens)[:-1]
    assert listed(view["position_ids"][0, begins]) == [0] * len(begins)
    assert listed(view["labels"][0, begins]) == [IGNORE] * len(begins)


@pytest.mark.parametrize("batch", rows_and_flat(), ids=["rows", "varlen", "tail", "flatten"])
def test_c25_lengths_are_python_ints_and_offsets_int32(batch):
    longest = max(np.diff(batch.cu_seqlens_host))
    for view, names in (
        (batch.transformers(), ("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k")),
        (batch.flash_attn(), ("cu_seqlens_q", "cu_seqlens_k", "max_seqlen_q", "max_seqlen_k")),
        (batch.varlen_attn(), ("cu_seq_q", "cu_seq_k", "max_q", "max_k")),
        (
            batch.transformer_engine(),
            ("cu_seqlens_q", "cu_seqlens_kv", "max_seqlen_q", "max_seqlen_kv"),
        ),
    ):
        q, k, max_q, max_k = (view[name] for name in names)
        assert q is k
        assert q.dtype == torch.int32
        assert q.is_contiguous()
        assert type(max_q) is type(max_k) is int
        assert max_q == max_k == longest


def test_c25_views_ask_no_device():
    """A meta tensor has no values: asking for one raises, as a wait for a device would."""
    for host in rows_and_flat():
        batch = host.to("meta")
        for view in (
            batch.transformers(seq_idx=True),
            batch.flash_attn(window=2),
            batch.varlen_attn(),
            batch.transformer_engine(),
            batch.nested(),
            {"seq_idx": batch.seq_idx()},
        ):
            for value in view.values():
                assert not isinstance(value, torch.Tensor) or value.device.type == "meta"
        assert batch.packed_seq_params().cu_seqlens_q is batch.cu_seqlens
        assert batch.xformers() == host.xformers()
        assert listed(batch.linear_attention()["cu_seqlens_cpu"]) == listed(host.cu_seqlens)
        assert listed(batch.cu_seqlens_host) == listed(host.cu_seqlens)


def test_c28_no_view_has_an_attention_mask_of_ones():
    for batch in rows_and_flat():
        assert "attention_mask" not in batch
        assert "attention_mask" not in batch.transformers()


def test_c29_no_positions_no_arguments():
    for fields in (["input_ids", "labels"], ["input_ids"]):
        batch = only_batch([3, 2], seq_len=5, fields=fields)
        with pytest.raises(bf.PlanError, match="position_ids"):
            batch.transformers()
    batch = only_batch([3, 2], seq_len=5, fields=["input_ids", "position_ids"])
    assert listed(batch.transformers()["position_ids"]) == [[0, 1, 2, 0, 1]]


def test_c32_pre_shifted_labels_go_by_their_own_name():
    batch = only_batch([3, 2], seq_len=5, fields=["input_ids", "position_ids", "shift_labels"])
    view = batch.transformers()
    assert "labels" not in view
    assert listed(view["shift_labels"])[0][2] == listed(view["shift_labels"])[0][4] == IGNORE


def test_c92_attention_work_is_that_of_the_documents():
    for batch in (
        only_batch([4, 2, 2], seq_len=8),
        only_batch([4, 2, 2], seq_len=8, layout="varlen"),
        bf.flatten([range(4), range(2), range(2)]),
        bf.flatten([range(4), range(2), range(2)], pad_to_multiple_of=16, align=4),
    ):
        assert (batch.attention_work, batch.num_tokens) == (24, 8)


def test_flash_attn_counts_keys_before_a_token():
    batch = only_batch([3, 2], seq_len=5)
    assert "window_size" not in batch.flash_attn()
    assert batch.flash_attn()["causal"] is True
    assert batch.flash_attn(window=4)["window_size"] == (3, 0)
    assert batch.varlen_attn()["window_size"] == (-1, 0)
    assert batch.varlen_attn(window=1)["window_size"] == (0, 0)
    assert batch.transformer_engine(window=np.int64(2))["window_size"] == (1, 0)
    for view in (batch.flash_attn, batch.varlen_attn, batch.transformer_engine):
        for wrong in (0, -1, True, 2.0):
            with pytest.raises(bf.PlanError, match="window"):
                view(window=wrong)


def test_varlen_attn_has_the_names_of_torch():
    from inspect import signature

    from torch.nn.attention.varlen import varlen_attn

    batch = only_batch([3, 2], seq_len=5)
    signature(varlen_attn).bind(None, None, None, **batch.varlen_attn())


def test_c23_real_and_physical_offsets_are_told_apart():
    documents = [np.arange(n) for n in (3, 2, 4)]
    batch = bf.flatten(documents, align=4)
    params = batch.packed_seq_params()
    assert params.qkv_format == "thd"
    assert listed(params.cu_seqlens_q) == [0, 3, 5, 9]
    assert params.cu_seqlens_q is params.cu_seqlens_kv
    assert params.cu_seqlens_q.dtype == torch.int32
    assert listed(params.cu_seqlens_q_padded) == [0, 4, 8, 12]
    assert params.cu_seqlens_q_padded is params.cu_seqlens_kv_padded is batch.cu_seqlens
    assert params.max_seqlen_q == params.max_seqlen_kv == 4
    with_tail = bf.flatten(documents, align=4, pad_to_multiple_of=16, max_segments=6)
    view = with_tail.transformer_engine()
    assert listed(view["cu_seqlens_q"]) == [0, 3, 5, 9, 13, 13, 13]
    assert listed(view["cu_seqlens_q_padded"]) == [0, 4, 8, 12, 16, 16, 16]


@pytest.mark.parametrize("layout", ["varlen", "rows"])
def test_c23_a_share_of_a_context_parallel_group_has_the_offsets_of_the_whole(layout):
    settings = {"seq_len": 12, "layout": layout, "align": 4}
    whole = only_batch([3, 2, 4], **settings)
    for rank in range(2):
        share = only_batch([3, 2, 4], cp_size=2, cp_rank=rank, cp_split="document", **settings)
        assert share["input_ids"].numel() == whole["input_ids"].numel() / 2
        ours, wanted = share.packed_seq_params(), whole.packed_seq_params()
        for name, value in vars(wanted).items():
            assert listed(getattr(ours, name)) == listed(value)
        for view in (
            share.transformers,
            share.flash_attn,
            share.varlen_attn,
            share.xformers,
            share.nested,
            share.seq_idx,
            share.linear_attention,
            share.flex,
            share.block_mask,
            share.sdpa,
            share.dense_mask,
        ):
            with pytest.raises(bf.PlanError, match=f"share {rank} of 2"):
                view()


@pytest.mark.parametrize(("layout", "split"), [("rows", None), ("varlen", "sequence")])
def test_a_share_of_sequences_is_not_passed_off_as_one_of_documents(layout, split):
    settings = {"seq_len": 12, "layout": layout, "align": 4, "cp_split": split}
    share = only_batch([3, 2, 4], cp_size=2, cp_rank=1, **settings)
    for batch in (share, share.to("cpu"), pickle.loads(pickle.dumps(share))):
        assert (batch.cp_size, batch.cp_rank, batch.cp_split) == (2, 1, "sequence")
        for view in (batch.packed_seq_params, batch.transformer_engine):
            with pytest.raises(bf.PlanError, match='cp_split="document"'):
                view()
    assert only_batch([3, 2, 4], **settings).cp_split is None


def test_without_gaps_both_offsets_are_one_object():
    for batch in [*rows_and_flat(), bf.flatten([range(4), range(8)], align=4, max_segments=9)]:
        params = batch.packed_seq_params()
        assert params.cu_seqlens_q is params.cu_seqlens_q_padded is batch.cu_seqlens


def test_packed_seq_params_is_megatrons_own_class_where_it_is_imported(monkeypatch):
    @dataclass
    class Theirs:
        """The fields of megatron-core 0.16.1."""

        qkv_format: str = None
        cu_seqlens_q: torch.Tensor = None
        cu_seqlens_kv: torch.Tensor = None
        cu_seqlens_q_padded: torch.Tensor = None
        cu_seqlens_kv_padded: torch.Tensor = None
        max_seqlen_q: int = None
        max_seqlen_kv: int = None
        local_cp_size: int = None
        cp_group: object = None

    batch = only_batch([3, 2], seq_len=5)
    ours = batch.packed_seq_params()
    module = ModuleType("megatron.core.packed_seq_params")
    module.PackedSeqParams = Theirs
    monkeypatch.setitem(sys.modules, module.__name__, module)
    theirs = batch.packed_seq_params()
    assert type(theirs) is Theirs
    for name, value in vars(ours).items():
        assert getattr(theirs, name) is value


def test_xformers_gets_python_ints():
    for batch in rows_and_flat():
        lengths = batch.xformers()["q_seqlen"]
        assert lengths == np.diff(batch.cu_seqlens_host).tolist()
        assert all(type(n) is int for n in lengths)
    assert bf.flatten([[1, 2], [3]], max_segments=9).xformers() == {"q_seqlen": [2, 1]}


def test_nested_tensors_hold_the_segments():
    for batch in [*rows_and_flat(), bf.flatten([[1, 2], [3]], max_segments=9, align=2)]:
        values = batch["input_ids"].flatten()
        nested = torch.nested.nested_tensor_from_jagged(values, **batch.nested())
        ends = listed(batch.cu_seqlens[: batch.num_segments + 1])
        parts = nested.unbind()
        assert len(parts) == batch.num_segments
        for part, begin, end in zip(parts, ends, ends[1:], strict=False):
            assert part.equal(values[begin:end])
        assert batch.nested()["offsets"].dtype == torch.int64


def test_seq_idx_numbers_segments_tails_too():
    rows, flat, tail, _ = rows_and_flat()
    assert listed(rows.seq_idx()) == [[0, 0, 0, 1, 1], [2, 2, 2, 2, 3]]
    assert listed(flat.seq_idx()) == [[0, 0, 0, 1, 1, 2, 2, 2, 2]]
    assert listed(tail.seq_idx()) == [[0, 0, 0, 1, 1, 2, 2, 2, 2, 3]]
    assert rows.seq_idx().dtype == torch.int32
    assert rows.seq_idx().is_contiguous()
    assert rows.seq_idx() is not rows.seq_idx()
    assert listed(rows.transformers(seq_idx=True)["seq_idx"]) == listed(tail.seq_idx())


def test_what_pads_cu_seqlens_is_no_segment():
    batch = only_batch([3, 2, 4], batch_size=2, seq_len=5, max_segments=4)
    assert len(batch.cu_seqlens) == 11
    assert batch.xformers() == {"q_seqlen": [3, 2, 4, 1]}
    assert listed(batch.nested()["offsets"]) == [0, 3, 5, 9, 10]
    assert batch.nested()["min_seqlen"] == 1
    assert listed(batch.seq_idx()) == [[0, 0, 0, 1, 1], [2, 2, 2, 2, 3]]
    assert batch.packed_seq_params().cu_seqlens_q is batch.cu_seqlens


def test_each_batch_has_offsets_of_its_own_that_stay_true():
    """Kernels remember by the identity of the tensor what they made of it."""
    loader = bf.DataLoader(
        corpus_of([3, 4, 2, 5, 1, 6] * 8), seq_len=6, num_workers=1, depth=1, max_slots=4
    )
    kept = []  # of every batch, though the loader has four slots
    for batch in loader:
        view = batch.linear_attention()
        assert view["cu_seqlens"] is view["cu_seqlens_cpu"] is batch.cu_seqlens
        kept.append((batch.cu_seqlens, batch.cu_seqlens.clone()))
    assert len(kept) > 20
    assert len({offsets.data_ptr() for offsets, _ in kept}) == len(kept)
    assert all(offsets.equal(copy) for offsets, copy in kept)
