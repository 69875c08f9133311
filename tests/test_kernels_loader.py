"""Kernel K1 against loaders: what travels as a parcel has the columns of a batch filled here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import brimful as bf
from brimful.config import FIELDS
from parcels import IGNORE, PAD, Parcel, check, expand
from places import PLACES, Host
from truth import corpus_of

WIDTHS = (np.uint16, np.uint32, np.int64)
LENGTHS = [1, 2, 3, 40, 700, 5, 64, 1, 1, 130, 2000, 17, 512, 511, 513, 9, 33, 4, 250, 61] * 3

pytestmark = [
    pytest.mark.filterwarnings("ignore:a bad document was put aside"),
    pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__),
]


def batches_of(corpus: Any, **settings: Any) -> Iterator[bf.Batch]:
    settings = {"batch_size": 3, "seq_len": 512, "fields": FIELDS, **settings}
    yield from bf.DataLoader(corpus, pad_token_id=PAD, num_workers=0, **settings)


def flat(batch: bf.Batch) -> dict[str, np.ndarray]:
    return {name: np.asarray(column).reshape(-1) for name, column in batch.items()}


def of_batch(
    batch: bf.Batch, dtype: Any = np.uint16, *, continued: bool = False, masked: bool = True
) -> Parcel:
    """The parcel that a filled batch of all fields would have travelled as."""
    columns, cu = flat(batch), np.asarray(batch.cu_seqlens)
    padding = len(cu) - 1 - batch.num_segments  # to a fixed number of segments

    def padded(values: Any) -> np.ndarray:
        return np.append(values, np.full(padding, -1))

    begins, lengths = cu[: batch.num_segments], batch.lengths
    return Parcel(
        cu_seqlens=cu,
        lengths=padded(lengths),
        document_ids=padded(columns["document_ids"][begins]),
        tokens=columns["input_ids"].astype(dtype),
        row=np.asarray(batch["input_ids"]).shape[1],
        first_positions=padded(batch.starts) if continued else None,
        next_tokens=padded(columns["shift_labels"][begins + np.maximum(lengths, 1) - 1]),
        labelled=columns["labels"] != IGNORE if masked else None,
    )


@pytest.mark.parametrize("dtype", WIDTHS, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize(
    "how",
    [
        {"layout": "rows"},
        {"layout": "varlen"},
        {"layout": "varlen", "tail": "keep"},
        {"layout": "rows", "positions": "continue"},
        {"layout": "rows", "packing": "pad"},
        {"layout": "rows", "vocab_size": 47000},  # some documents are bad and put aside
        {"layout": "rows", "align": 8},
        {"layout": "varlen", "align": 16, "max_segments": 40},
        {"layout": "varlen", "align": 16, "tail": "keep", "vocab_size": 47000},
    ],
    ids=str,
)
def test_equals_what_the_loader_fills(place: type[Host], how: dict[str, Any], dtype: Any) -> None:
    continued = how.get("positions") == "continue"
    for batch in batches_of(corpus_of(LENGTHS, stride=800), **how):
        parcel = of_batch(batch, dtype, continued=continued, masked=False)
        check(expand(parcel, place(), columns=FIELDS), flat(batch))


def masked_corpus() -> bf.Corpus:
    random = np.random.default_rng(3)
    documents = [random.integers(0, 999, n) for n in LENGTHS]
    return bf.open(documents, loss_masks=[random.integers(0, 2, n).astype(bool) for n in LENGTHS])


@pytest.mark.parametrize("fields", [FIELDS, ("input_ids", "shift_labels", "loss_weights")])
@pytest.mark.parametrize("align", [1, 8])
def test_loss_masks_travel_as_bits(place: type[Host], align: int, fields: tuple[str, ...]) -> None:
    some = batches_of(masked_corpus(), align=align, fields=fields)
    for batch, full in zip(some, batches_of(masked_corpus(), align=align), strict=True):
        weigh_shifted = "labels" not in fields
        found = expand(of_batch(full), place(), columns=fields, weigh_shifted=weigh_shifted)
        check(found, flat(batch))


def test_a_label_is_carried_over_a_cut(place: type[Host]) -> None:
    fields = ("input_ids", "shift_labels", "loss_weights", "document_ids")
    carried = 0
    for layout in ("rows", "varlen"):
        settings: dict[str, Any] = {"seq_len": 96, "layout": layout}
        full = batches_of(masked_corpus(), **settings)
        cut = batches_of(masked_corpus(), fields=fields, carry_label=True, **settings)
        for batch, plain in zip(cut, full, strict=True):
            columns = flat(plain) | flat(batch)
            columns["labels"] = flat(plain)["labels"]
            parcel = of_batch(plain)
            last = np.asarray(plain.cu_seqlens)[:-1] + plain.lengths - 1
            parcel.next_tokens[:] = columns["shift_labels"][last]
            carried += (parcel.next_tokens != IGNORE).sum()
            found = expand(parcel, place(), columns=fields, weigh_shifted=True)
            check(found, flat(batch))
    assert carried > 10


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("split", ["document", "sequence"])
@pytest.mark.parametrize("layout", ["rows", "varlen"])
def test_every_rank_of_a_context_parallel_group_gets_its_share(
    place: type[Host], layout: str, split: str, size: int
) -> None:
    settings: dict[str, Any] = {"layout": layout, "align": 8, "batch_size": 2}
    settings |= {"tail": "keep"} if split == "sequence" else {}
    corpus = corpus_of(LENGTHS, stride=800)
    whole = list(batches_of(corpus, **settings))
    for rank in range(size):
        shares = batches_of(corpus, cp_size=size, cp_rank=rank, cp_split=split, **settings)
        for batch, full in zip(shares, whole, strict=True):
            found = expand(
                of_batch(full),
                place(),
                columns=FIELDS,
                cp_size=size,
                cp_rank=rank,
                per_document=split == "document",
            )
            check(found, flat(batch))
