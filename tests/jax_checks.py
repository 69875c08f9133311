"""What holds of `brimful.integrations.jax`, checked in a process of its own, as JAX's threads and
forks of other tests do not go together: `python -m jax_checks NAME...` prints what failed.
"""

from __future__ import annotations

import gc
import itertools
import json
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import brimful as bf
from brimful.integrations.jax import arrays
from truth import corpus_of

FIELDS = ("input_ids", "labels", "position_ids", "document_ids", "loss_weights")
LENGTHS = [int(n) for n in np.random.default_rng(0).integers(3, 90, 300)]
STRIDE = 1 << 10


def loader(**how: Any) -> Any:
    settings = {"batch_size": 4, "seq_len": 64, "fields": FIELDS, "num_workers": 1, "seed": 3}
    return bf.DataLoader(corpus_of(LENGTHS, stride=STRIDE), **(settings | how))


def address(array: Any) -> int:
    """Where its first value lies."""
    if isinstance(array, jax.Array):
        return int(array.unsafe_buffer_pointer())
    return int(array.numpy().ctypes.data)


def check_columns_hold_what_the_batch_does() -> None:
    for layout in ("rows", "varlen"):
        for batch in loader(layout=layout):
            found = arrays(batch)
            assert list(found) == [*FIELDS, "segment_ids"]
            for name in FIELDS:
                expected = batch[name].numpy()
                assert found[name].dtype == (np.float32 if name == "loss_weights" else np.int32)
                np.testing.assert_array_equal(found[name], expected)


def check_columns_of_jax_dtypes_are_not_copied() -> None:
    batch = next(iter(loader()))
    found = arrays(batch)
    assert {name for name in FIELDS if address(found[name]) == address(batch[name])} == {
        "document_ids",
        "loss_weights",
    }
    with jax.enable_x64(True):
        found = arrays(batch)
        assert found["input_ids"].dtype == np.int64
        assert all(address(found[name]) == address(batch[name]) for name in FIELDS)


def check_memory_is_not_used_again_while_an_array_lives() -> None:
    made = loader(depth=1, max_slots=4)
    batches = iter(made)
    kept: list[Any] = []
    copies: list[Any] = []

    def keep_all() -> None:
        for batch in batches:
            copies.append(batch["document_ids"].numpy().copy())
            kept.append(arrays(batch)["document_ids"])

    with pytest.raises(bf.RingExhausted):
        keep_all()
    assert len(kept) == 4
    for array, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    del array
    lone = kept.pop() + 0  # a result of one is none over that memory
    kept.clear()
    gc.collect()
    assert sum(1 for _ in batches) > 20
    np.testing.assert_array_equal(lone, copies[-1])


def check_memory_is_not_used_again_while_a_computation_reads() -> None:
    @jax.jit
    def late(column: Any) -> Any:
        wait = jax.lax.fori_loop(0, 40, lambda _, m: m @ m * 1e-3, jnp.ones((400, 400)))
        return column + (wait[0, 0] * 0).astype(jnp.int32)

    batches = iter(loader(depth=1))
    late(arrays(next(batches))["document_ids"]).block_until_ready()
    results, copies = [], []
    for _ in range(4):
        batch = next(batches)
        copies.append(batch["document_ids"].numpy().copy())
        results.append(late(arrays(batch)["document_ids"]))
        del batch
        for _ in range(5):  # as many batches as would overwrite it
            next(batches)
    for result, copy in zip(results, copies, strict=True):
        np.testing.assert_array_equal(result, copy)


def check_a_donated_array_is_not_written_over() -> None:
    batch = next(iter(loader()))
    before = batch["document_ids"].numpy().copy()
    donated = arrays(batch)["document_ids"]
    result = jax.jit(lambda column: column + 7, donate_argnums=0)(donated)
    np.testing.assert_array_equal(result, before + 7)
    np.testing.assert_array_equal(batch["document_ids"], before)


def check_nothing_is_cut_off() -> None:
    for value in (2**31 - 1, -(2**31)):
        batch = bf.flatten([[1, 2]])
        batch["labels"][0, 1] = value
        assert arrays(batch)["labels"][0, 1] == value
    for name, value in (("input_ids", 2**31), ("input_ids", 2**40), ("labels", -(2**31) - 1)):
        batch = bf.flatten([[1, 2]])
        batch[name][0, 1] = value
        with pytest.raises(bf.PlanError, match=f"{name} holds {value}, and int32 of JAX ends at"):
            arrays(batch)
        with jax.enable_x64(True):
            assert int(arrays(batch)[name][0, 1]) == value


def check_segment_ids_number_the_documents_of_each_row() -> None:
    for how in ({}, {"layout": "varlen"}, {"align": 8}, {"max_segments": 5}, {"packing": "pad"}):
        for batch in loader(**how):
            found = np.asarray(arrays(batch)["segment_ids"])
            ids = batch["document_ids"].numpy() + 1
            if "align" in how:  # a gap is of its document, and a tail of none
                assert (found[ids > 0] == ids[ids > 0]).all()
                assert (found == 0).sum() == int(batch.lengths[batch.documents < 0].sum())
            elif how.get("layout") == "varlen":  # one row of all rows, without their ends
                counts = np.bincount(found[0], minlength=batch.num_segments + 1)[1:]
                np.testing.assert_array_equal(counts, batch.lengths)
            else:
                np.testing.assert_array_equal(found, ids)


def check_attention_of_jax_keeps_documents_apart() -> None:
    """By the ids alone, as Pallas' flash attention defines them and as a mask."""
    from jax.experimental.pallas.ops.tpu.flash_attention import SegmentIds, mha_reference

    batch = next(iter(loader()))
    ids = arrays(batch)["segment_ids"]
    q, k, v = jax.random.normal(jax.random.key(0), (3, len(ids), 2, 64, 8))
    by_ids = mha_reference(q, k, v, None, SegmentIds(ids, ids), causal=True, sm_scale=8**-0.5)
    mask = ids[:, None, :, None] == ids[:, None, None, :]
    qkv = (a.transpose(0, 2, 1, 3) for a in (q, k, v))
    by_mask = jax.nn.dot_product_attention(*qkv, mask=mask, is_causal=True)
    np.testing.assert_allclose(by_mask.transpose(0, 2, 1, 3), by_ids, rtol=1e-4, atol=1e-5)
    assert batch.num_segments > 4
    for begin, end in itertools.pairwise(batch.cu_seqlens.tolist()):
        row, begin, end = begin // 64, begin % 64, end - begin // 64 * 64
        alone = (np.asarray(a[row, :, begin:end]) for a in (q, k, v))
        np.testing.assert_allclose(
            by_ids[row, :, begin:end], causal_attention(*alone), rtol=1e-4, atol=1e-5
        )


def causal_attention(q: Any, k: Any, v: Any) -> Any:
    """Of one document, [heads, length, dim], in numpy."""
    scores = q @ k.transpose(0, 2, 1) * q.shape[-1] ** -0.5
    scores[:, ~np.tri(q.shape[1], dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def check_rows_are_shared_out_over_devices() -> None:
    devices = jax.devices()
    assert len(devices) == 4
    mesh = jax.sharding.Mesh(np.array(devices), ("data",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    batch = next(iter(loader()))
    found = arrays(batch, sharding=sharding)
    plain = arrays(batch, sharding=devices[2])
    assert list(found) == list(plain) == [*FIELDS, "segment_ids"]
    for name, array in found.items():
        shards = sorted(array.addressable_shards, key=lambda shard: shard.device.id)
        assert [shard.data.shape for shard in shards] == [(1, 64)] * 4
        for row, shard in enumerate(shards):
            np.testing.assert_array_equal(shard.data[0], plain[name][row])
        assert plain[name].devices() == {devices[2]}


def check_what_is_refused() -> None:
    share = next(iter(loader(batch_size=2, cp_size=2, cp_rank=0, rank=0, world_size=1)))
    away = bf.flatten([[1, 2]]).to("meta")
    for batch, message in ((share, "segment ids speak of whole"), (away, "leave device= out")):
        with pytest.raises(bf.PlanError, match=message):
            arrays(batch)


# A transformer of one layer in plain jax.numpy, and Adam.

VOCAB, WIDTH, HEADS = 64, 32, 4


def parameters() -> dict[str, Any]:
    shapes = {
        "tokens": (VOCAB, WIDTH),
        "places": (64, WIDTH),
        "qkv": (WIDTH, 3 * WIDTH),
        "out": (WIDTH, WIDTH),
        "up": (WIDTH, 4 * WIDTH),
        "down": (4 * WIDTH, WIDTH),
        "head": (WIDTH, VOCAB),
    }
    keys = jax.random.split(jax.random.key(1), len(shapes))
    return {
        name: jax.random.normal(key, shape) * 0.1
        for key, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def loss_of(weights: dict[str, Any], batch: dict[str, Any], items: Any) -> Any:
    hidden = weights["tokens"][batch["input_ids"]] + weights["places"][batch["position_ids"]]
    rows, length, _ = hidden.shape
    q, k, v = jnp.split(hidden @ weights["qkv"], 3, axis=-1)
    heads = (a.reshape(rows, length, HEADS, WIDTH // HEADS) for a in (q, k, v))
    ids = batch["segment_ids"]
    mask = ids[:, None, :, None] == ids[:, None, None, :]
    seen = jax.nn.dot_product_attention(*heads, mask=mask, is_causal=True)
    hidden = hidden + seen.reshape(rows, length, WIDTH) @ weights["out"]
    hidden = hidden + jax.nn.gelu(hidden @ weights["up"]) @ weights["down"]
    logs = jax.nn.log_softmax(hidden @ weights["head"])
    labels = batch["shift_labels"]
    picked = jnp.take_along_axis(logs, jnp.maximum(labels, 0)[..., None], axis=-1)[..., 0]
    return -(picked * (labels != -100)).sum() / items


@jax.jit
def step(state: Any, batch: dict[str, Any], items: Any) -> tuple[Any, Any]:
    weights, mean, square, count = state
    loss, slope = jax.value_and_grad(loss_of)(weights, batch, items)
    count = count + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slope)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, slope)
    rate = 3e-3 * jnp.sqrt(1 - 0.99**count) / (1 - 0.9**count)
    weights = jax.tree.map(
        lambda w, m, s: w - rate * m / (jnp.sqrt(s) + 1e-8), weights, mean, square
    )
    return (weights, mean, square, count), loss


def learning() -> Any:
    """The loader of training: documents that count on by a stride of their own."""
    generator = np.random.default_rng(5)
    documents = [
        (generator.integers(64) + generator.integers(1, 5) * np.arange(n)) % VOCAB
        for n in generator.integers(2, 90, 150)
    ]
    fields = ("input_ids", "shift_labels", "position_ids", "document_ids")
    how = {"batch_size": 4, "seq_len": 64, "shuffle": True, "fields": fields, "drop_last": True}
    return bf.DataLoader(documents, **how)


def endless(made: Any) -> Iterator[Any]:
    while True:
        yield from made


def by_hand(batch: Any) -> dict[str, Any]:
    """The same without the integration: copies, narrowed by numpy."""
    columns = {name: column.numpy().astype(np.int32) for name, column in batch.items()}
    return {**columns, "segment_ids": columns.pop("document_ids") + 1}


def train(
    feed: Callable[[Any], Any], made: Any, state: Any, steps: range, stop: int = -1
) -> tuple[list[float], Any]:
    """Losses, and what a checkpoint holds after step `stop`, through JSON."""
    losses, saved = [], None
    for number, batch in zip(steps, endless(made), strict=False):
        state, loss = step(state, feed(batch), float(batch.num_items_step_global))
        losses.append(float(loss))
        if number == stop:
            saved = json.dumps(
                [jax.tree.map(np.ndarray.tolist, jax.device_get(state)), made.state_dict()]
            )
    return losses, saved


def check_a_transformer_learns_the_same_fed_by_hand_and_after_an_interruption() -> None:
    weights = parameters()
    zeros = jax.tree.map(jnp.zeros_like, weights)
    fresh = (weights, zeros, zeros, jnp.zeros((), jnp.int32))
    losses, saved = train(arrays, learning(), fresh, range(200), stop=76)
    expected, _ = train(by_hand, learning(), fresh, range(200))
    np.testing.assert_allclose(losses, expected, rtol=1e-6)
    assert np.mean(losses[-10:]) < 0.6 * np.mean(losses[:10])
    assert saved is not None
    numbers, place = json.loads(saved)
    again = learning()
    again.load_state_dict(place)
    state = (
        *(jax.tree.map(jnp.float32, part, is_leaf=is_list) for part in numbers[:3]),
        numbers[3],
    )
    rest, _ = train(arrays, again, state, range(77, 200))
    np.testing.assert_allclose(rest, losses[77:], rtol=1e-5)


def is_list(thing: Any) -> bool:
    return isinstance(thing, list)


def main() -> None:
    torch.set_num_threads(1)
    failed = {}
    for name in sys.argv[1:]:
        try:
            globals()[name]()
        except Exception:
            failed[name] = traceback.format_exc()
    json.dump(failed, sys.stdout)


if __name__ == "__main__":
    main()
