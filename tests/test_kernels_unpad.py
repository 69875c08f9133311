"""Unpadding and padding on a device: what the host makes of the same columns, bit for bit.

Where there is no device, tensors in host memory are taken for a device's, and the kernel runs on
the host: all but the launch is as it is on one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful import _core, kernels, padding_columns
from places import PLACES, Host
from test_unpad import TORCH_DTYPES, masks, multiples, numbered, trailing_shapes

DEVICES = ["cpu", "cuda"][: len(PLACES)]
one_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The device of columns, which the code under test takes for a CUDA device."""
    if request.param == "cpu":
        monkeypatch.setattr(padding_columns, "on_device", padding_columns.is_tensor)
        monkeypatch.setattr("brimful.padding.on_device", padding_columns.is_tensor)
        monkeypatch.setattr("brimful.kernels.launch", lambda kernel, _: kernel.run_on_host())
    return request.param


def same(found: Any, want: Any) -> None:
    """Two tensors, the first of which is a device's."""
    assert found.dtype == want.dtype
    assert found.shape == want.shape
    assert plain(found) == plain(want)


def plain(tensor: Any) -> Any:
    """Numbers of any dtype, none of which needs more than 53 bits here."""
    return tensor.cpu().to(torch.complex128).tolist()


@given(masks(), st.sampled_from(TORCH_DTYPES), trailing_shapes, multiples, st.data())
@one_fixture
def test_unpad_and_back(
    device: str,
    mask: np.ndarray,
    dtype: torch.dtype,
    trailing: tuple[int, ...],
    multiple: int,
    data: st.DataObject,
) -> None:
    column = numbered(mask, trailing)
    # The host's answer is asked for as numpy's bytes, which never go to a device.
    tensor = torch.from_numpy(column).to(dtype)
    raw = tensor.unsqueeze(-1).contiguous().view(torch.uint8).numpy()
    want = bf.unpad(raw, mask, multiple=multiple)
    there = torch.from_numpy(mask).to(device)
    found = bf.unpad(tensor.to(device), there, multiple=multiple)
    assert found[2:] == want[2:]
    same(found.cu_seqlens, torch.from_numpy(want.cu_seqlens))
    same(found.values.unsqueeze(-1).contiguous().view(torch.uint8), torch.from_numpy(want.values))

    fill = data.draw(st.sampled_from([0, 1]))
    filler = torch.full((1,), fill, dtype=dtype)
    padded = torch.where(
        torch.from_numpy(mask).reshape(*mask.shape, *[1] * len(trailing)),
        tensor.view(torch.uint8) if dtype == torch.float8_e4m3fn else tensor,
        filler.view(torch.uint8) if dtype == torch.float8_e4m3fn else filler,
    ).view(dtype)
    same(bf.repad(found.values, found.cu_seqlens, attention_mask=there, fill=fill), padded)


@given(st.data(), st.sampled_from(["left", "right"]), trailing_shapes)
@one_fixture
def test_repad_of_segments(
    device: str, data: st.DataObject, side: Any, trailing: tuple[int, ...]
) -> None:
    lengths = data.draw(st.lists(st.integers(0, 9), max_size=6))
    rows = data.draw(st.none() | st.integers(0, len(lengths)))
    longest = max(lengths[:rows], default=0)
    width = data.draw(st.none() | st.integers(longest, longest + 3))
    cu_seqlens = np.concatenate([[0], np.cumsum(lengths, dtype=np.int32)])
    values = numbered(np.ones((1, cu_seqlens[-1])), trailing)[0].astype(np.int32)
    how: dict[str, Any] = {"rows": rows, "width": width, "side": side, "fill": -9}
    want = bf.repad(values, cu_seqlens, **how)
    offsets = torch.from_numpy(cu_seqlens).to(device)
    columns = {"a": torch.from_numpy(values).to(device), "b": torch.from_numpy(values).to(device)}
    how["fill"] = {"a": -9, "b": -9}
    found = bf.repad(columns, offsets, **how)
    same(found["a"], torch.from_numpy(want))
    same(found["b"], torch.from_numpy(want))


def test_words_of_every_width_move(device: str) -> None:
    """Items of 1 .. 33 bytes, and of thousands, at addresses of every alignment."""
    mask = np.array([[1, 0, 1, 1], [0, 0, 0, 1]], bool)
    there = torch.from_numpy(mask).to(device)
    for size in [*range(1, 34), 4096, 5000 * 16]:
        for skip in (0, 1, 2, 4, 8):
            block = np.arange(8 * size + skip, dtype=np.uint8)
            column = block[skip:].reshape(2, 4, size)
            tensor = torch.from_numpy(block).to(device)[skip:].reshape(2, 4, size)
            found = bf.unpad(tensor, there)
            same(found.values, torch.from_numpy(bf.unpad(column, mask).values))
            back = bf.repad(found.values, found.cu_seqlens, attention_mask=there, fill=3)
            same(back, torch.from_numpy(np.where(mask[..., None], column, np.uint8(3))))


def test_fills_of_every_width(device: str) -> None:
    """A fill of up to 16 bytes goes into items that hold it more than once."""
    cu_seqlens = torch.tensor([0, 1])
    for dtype in TORCH_DTYPES:
        values = torch.zeros((1, 3, 2), device=device).to(dtype)
        with torch.device("meta"):  # torch's default device is another one
            found = bf.repad(values, cu_seqlens, width=2, fill=1)
        assert plain(found) == [[[[0] * 2] * 3, [[1] * 2] * 3]]


@pytest.mark.parametrize("item_bytes", [2, 20, 24, 34, 48, 33])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_a_fill_is_wider_than_a_word(place: type[Host], item_bytes: int) -> None:
    fill, here = bytes(range(16)), place()
    tokens = np.full(item_bytes, 99, np.uint8)
    rows = here.room(3 * item_bytes, np.uint8)
    kernel = _core.make_move(
        here.give(np.array([-1, 0, -1], np.int32)),
        slots=3,
        item_bytes=item_bytes,
        rows=rows,
        tokens=here.give(tokens),
        fill=fill,
    )
    here.run(kernel)
    empty = list((fill * 3)[:item_bytes])
    assert here.take(rows).tolist() == empty + tokens.tolist() + empty


def test_gradients_go_where_tokens_came_from(device: str) -> None:
    mask = torch.tensor([[0, 1, 1], [1, 0, 1]], device=device)
    column = torch.arange(6.0, device=device).reshape(2, 3).requires_grad_()
    weights = torch.tensor([1.0, 10, 100, 1000, 5, 5, 5, 5], device=device)
    (bf.unpad(column, mask, multiple=8).values * weights).sum().backward()
    assert column.grad is not None
    assert column.grad.tolist() == [[0, 1, 10], [100, 0, 1000]]
    values = torch.arange(5.0, device=device, requires_grad=True)
    cu_seqlens = torch.tensor([0, 2, 4, 5], device=device)
    padded = bf.repad(values, cu_seqlens, rows=2, width=3, side="left")
    (padded * torch.tensor([[9.0, 1, 2], [9, 3, 4]], device=device)).sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [1, 2, 3, 4, 0]


def test_a_mapping_keeps_its_rules(device: str) -> None:
    mask = torch.tensor([[1, 1, 0], [1, 0, 0]], device=device)
    ids = torch.tensor([[5, 6, 0], [7, 0, 0]], device=device)
    batch = {"input_ids": ids, "labels": ids, "position_ids": ids, "attention_mask": mask}
    found = bf.unpad(batch, mask, multiple=8)
    assert found.values["labels"].tolist() == [5, 6, 7, *[-100] * 5]
    assert found.values["position_ids"].tolist() == [5, 6, 7, 0, 1, 2, 3, 4]
    assert found.cu_seqlens.tolist() == [0, 2, 3, 8]
    assert found[2:] == (5, 3)
    assert {column.device.type for column in found.values.values()} == {device}


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([[1, 2]], "holds 2; 1 for a token"),
        ([[1.0, float("nan")]], "holds nan"),
        ([1, 0], r"shape \[2\]"),
    ],
)
def test_masks_that_are_none_are_refused(device: str, mask: Any, message: str) -> None:
    with pytest.raises(bf.PlanError, match=message):
        bf.unpad(torch.zeros((1, 2), device=device), torch.tensor(mask, device=device))


def test_a_mask_of_another_batch_is_refused(device: str) -> None:
    mask = torch.ones((1, 3), dtype=torch.bool, device=device)
    with pytest.raises(bf.PlanError, match="has 3 tokens, segment 0"):
        bf.repad(torch.zeros(2, device=device), torch.tensor([0, 2]), attention_mask=mask)
    with pytest.raises(bf.PlanError, match="multiple is 0"):
        bf.unpad(torch.zeros((1, 3), device=device), mask, multiple=0)


def test_columns_and_mask_are_on_one_device() -> None:
    column = torch.zeros((1, 2))
    mask = torch.ones((1, 2), device="meta")
    with pytest.raises(bf.DeviceError, match="values is on cpu and attention_mask on meta"):
        padding_columns.check_place("values", column, mask)


def test_a_launch_goes_to_the_current_stream_of_the_tensor_s_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[Any] = []

    @contextlib.contextmanager
    def selected(device: torch.device) -> Iterator[None]:
        events.append(device.index)
        yield
        events.append("back")

    def current_stream(device: torch.device) -> Any:
        return SimpleNamespace(device_index=device.index, cuda_stream=0x70 + device.index)

    monkeypatch.setattr(torch.cuda, "device", selected)
    monkeypatch.setattr(torch.cuda, "current_stream", current_stream)
    kernel: Any = SimpleNamespace(launch=lambda *where: events.append(where))
    kernels.launch(kernel, torch.device("cuda", 3))
    assert events == [3, (3, 0x73), "back"]


def test_more_tokens_than_int32_counts_are_refused() -> None:
    with pytest.raises(bf.PlanError, match="the rows hold 2147483650 tokens"):
        _core.count_tokens(np.array([2**31 - 1, 3]), 2**31 - 1, 1)
