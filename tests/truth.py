"""Corpora whose tokens say where they come from, and what a batch of them must hold.

Token value = document * STRIDE + position, so one comparison proves order, cut, shift and rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import brimful as bf

STRIDE = 1 << 20
IGNORE = -100


def document(number: int, length: int, dtype: Any = np.int64, stride: int = STRIDE) -> np.ndarray:
    return (number * stride + np.arange(length)).astype(dtype)


def corpus_of(lengths: Sequence[int], dtype: Any = np.int64, stride: int = STRIDE) -> bf.Corpus:
    return bf.open([document(i, n, dtype, stride) for i, n in enumerate(lengths)])


def mixed(sources: dict[str, Sequence[int]], **mix: Any) -> bf.Corpus:
    """Sources by name and lengths; documents are numbered over the whole mixture."""
    opened, first = {}, 0
    for name, lengths in sources.items():
        opened[name] = bf.open([document(first + i, n) for i, n in enumerate(lengths)])
        first += len(lengths)
    weights = mix.get("weights")
    if isinstance(weights, list) and weights and not isinstance(weights[0], tuple):
        mix["weights"] = dict(zip(sources, weights, strict=True))
    return bf.mix(opened, **mix)


def listed(column: Any) -> Any:
    """A column as nested lists."""
    return np.asarray(column).tolist()


def pieces(batch: bf.Batch) -> list[tuple[int, int, int]]:
    """(document, start, length) of the real segments of a batch, in order."""
    return [
        (int(d), int(s), int(n))
        for d, s, n in zip(batch.documents, batch.starts, batch.lengths, strict=True)
        if d >= 0
    ]


def all_pieces(loader: Iterable[bf.Batch]) -> list[tuple[int, int, int]]:
    return [piece for batch in loader for piece in pieces(batch)]


def token_counts(found: Iterable[tuple[int, int, int]]) -> Counter[tuple[int, int]]:
    """How often each (document, position) was delivered."""
    return Counter((d, s + i) for d, s, n in found for i in range(n))


def check(batch: bf.Batch, loader: bf.DataLoader, masks: dict[int, Any] | None = None) -> None:
    """Every column of a batch against what its segments say, token by token.

    Not of a share of a batch, as context parallelism has it.
    """
    config = loader.config
    width = batch[config.fields[0]].shape[1]  # of a row
    padded = np.asarray(batch.cu_seqlens)
    cu = padded[: batch.num_segments + 1]
    assert cu.dtype == np.int32
    assert cu[0] == 0
    assert (np.diff(cu) > 0).all()
    total = int(cu[-1])
    entries = batch.num_segments + 1
    if config.max_segments is not None:
        most = min(config.max_segments, config.seq_len) + config.keep_tail
        entries = config.batch_size * most + 1
    assert padded[len(cu) :].tolist() == [total] * (entries - len(cu))
    want = {name: np.zeros(total, np.int64) for name in config.fields}
    row_ids: Counter[int] = Counter()
    for s in range(batch.num_segments):
        begin, end = int(cu[s]), int(cu[s + 1])
        n, slots = int(batch.lengths[s]), end - begin
        d, start = int(batch.documents[s]), int(batch.starts[s])
        row = begin // width if config.layout == "rows" else 0
        ids = np.full(slots + 1, config.pad_token_id)
        trained = np.zeros(slots + 1, bool)  # and the token behind the segment
        numbers = np.full(slots, -1)
        if d >= 0:
            assert slots == -(-n // config.align) * config.align
            document = np.asarray(loader.corpus[d]).astype(np.int64)
            mask = np.ones(len(document), bool)
            if masks is not None and d in masks:
                mask = np.asarray(masks[d]).astype(bool)
            ids[:n] = document[start : start + n]
            trained[1:n] = mask[start + 1 : start + n]
            splits = config.packing == "concat" or config.overlong == "split"
            if config.carry_label and splits and start + n < len(document):
                ids[n] = document[start + n]
                trained[n] = mask[start + n]
            numbers[:n] = row_ids[row]
            row_ids[row] += 1
        else:
            assert slots == n
        labels = np.where(trained, ids, IGNORE)
        if config.carry_label:
            ids[n] = config.pad_token_id
        base = start if config.positions == "continue" and d >= 0 else 0
        columns = {
            "input_ids": ids[:-1],
            "labels": labels[:-1],
            "shift_labels": labels[1:],
            "position_ids": base + np.arange(slots),
            "document_ids": numbers,
            "loss_weights": trained[:-1],
        }
        if "shift_labels" in config.fields and "labels" not in config.fields:
            columns["loss_weights"] = trained[1:]
        for name in config.fields:
            want[name][begin:end] = columns[name]
    for name in config.fields:
        column = np.asarray(batch[name])
        dtype = {"document_ids": np.int32, "loss_weights": np.float32}.get(name, np.int64)
        assert column.dtype == dtype
        if config.layout == "rows":
            assert column.shape == (total // width, width)
        else:
            assert column.shape == (1, total)
        np.testing.assert_array_equal(column.ravel(), want[name].astype(dtype), err_msg=name)
    if config.layout == "rows":
        longest = (
            -(-max((n for _, _, n in pieces(batch)), default=1) // config.align) * config.align
        )
        assert width == (longest if config.packing == "bucket" else config.seq_len)
    assert batch.max_seqlen == np.diff(cu).max()
    assert batch.num_tokens == sum(n for _, _, n in pieces(batch))
    for name in {"labels", "shift_labels"} & set(config.fields):
        assert batch.num_items == int((want[name] != IGNORE).sum())


def put_at(loaders: list[bf.DataLoader], state: Any, **allow: bool) -> list[bf.DataLoader]:
    """The loaders of all ranks, gone to a state where one is given."""
    for loader in loaders:
        if state is not None:
            loader.load_state_dict(state, **allow)
    return loaders


def same(a: bf.Batch, b: bf.Batch) -> bool:
    """Whether two batches are equal in everything."""
    return (
        list(a) == list(b)
        and all(np.array_equal(a[name], b[name]) for name in a)
        and np.array_equal(a.cu_seqlens, b.cu_seqlens)
        and np.array_equal(a.lengths, b.lengths)
        and np.array_equal(a.documents, b.documents)
        and np.array_equal(a.starts, b.starts)
        and a.num_items_step == b.num_items_step
        and a.num_items_step_global == b.num_items_step_global
    )
