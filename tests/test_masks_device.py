"""Block masks made on a device: what the host makes, entry by entry.

Where there is no device, tensors in host memory are taken for a device's, and the kernel runs on
the host: all but the launch is as it is on one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful.masks import device as kernels
from mask_truth import listed, many_lengths, offsets
from places import PLACES

NAMES = bf.masks.BlockMaskArrays._fields
DEVICES = ["cpu", "cuda"][: len(PLACES)]
one_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The device of cu_seqlens, which the code under test takes for a CUDA device."""
    if request.param == "cpu":
        taken = lambda value: isinstance(value, torch.Tensor)  # noqa: E731
        monkeypatch.setattr("brimful.masks.blocks.on_device", taken)
        monkeypatch.setattr(kernels, "launch", lambda kernel, _: kernel.run_on_host())
    return request.param


def check_same(found: Any, want: Any, device: str) -> None:
    assert found.shape == want.shape
    assert found.BLOCK_SIZE == want.BLOCK_SIZE
    for row in range(want.shape[0]):
        lists = [
            listed([getattr(mask, name)[row, 0].cpu() for name in NAMES]) for mask in (found, want)
        ]
        assert lists[0] == lists[1]
    assert all(getattr(found, name).dtype == torch.int32 for name in NAMES)
    assert all(getattr(found, name).is_contiguous() for name in NAMES)
    length = want.shape[-1]
    q, k = torch.arange(length)[:, None], torch.arange(length)
    for row in range(want.shape[0]):
        seen = found.mask_mod(torch.tensor(row), 0, q.to(device), k.to(device)).cpu()
        assert torch.equal(seen, want.mask_mod(torch.tensor(row), 0, q, k))


@given(
    st.lists(many_lengths(documents=4), min_size=1, max_size=3),
    st.integers(0, 9),
    st.none() | st.integers(1, 70),
    st.booleans(),
    st.integers(0, 3),
    st.data(),
)
@one_fixture
def test_a_mask_made_on_a_device_is_that_of_the_host(
    device: str,
    rows: list[list[int]],
    tail: int,
    window: int | None,
    told: bool,
    spare: int,
    data: st.DataObject,
) -> None:
    total = max(map(sum, rows)) + tail
    cu = bf.masks.cu_seqlens(rows, total=total)
    cu = np.append(cu, [cu[-1]] * spare).astype(np.int32)
    block = data.draw(st.sampled_from([8, (8, 4), (5, 3), 128]))
    some = st.lists(st.integers(0, 70), min_size=len(cu) - 1, max_size=len(cu) - 1)
    prefixes = data.draw(st.none() | some)
    given_: Any = {"window": window, "rows": len(rows)}
    want = bf.masks.block_mask(cu, block, prefix_lengths=prefixes, **given_)
    found = bf.masks.block_mask(
        torch.from_numpy(cu).to(device, data.draw(st.sampled_from([torch.int32, torch.int64]))),
        block,
        prefix_lengths=None
        if prefixes is None
        else torch.tensor(prefixes, dtype=torch.int64, device=device),
        total=total * len(rows) if told else None,
        **given_,
    )
    check_same(found, want, device)


def test_only_cu_seqlens_go_to_a_device(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "cpu":
        monkeypatch.setattr("brimful.masks.flex.has_kernel", lambda device: True)
    cu = offsets([100, 7, 200, 77])
    want = bf.masks.block_mask(cu, window=99)
    check_same(bf.masks.block_mask(cu, window=99, device=device), want, device)
    rows = bf.masks.block_mask([cu, [0, 384]], 64, prefix_lengths=[[1, 2, 3, 4], [50]])
    found = bf.masks.block_mask(
        [cu, [0, 384]], 64, prefix_lengths=[[1, 2, 3, 4], [50]], device=device
    )
    check_same(found, rows, device)
    with pytest.raises(bf.PlanError):
        bf.masks.block_mask([0, 5, 3], device=device)
    with pytest.raises(bf.PlanError):
        bf.masks.block_mask([0, 3], window=0, device=device)
    with pytest.raises(bf.PlanError):
        bf.masks.block_mask([0, 3], prefix_lengths=[-1], device=device)


def test_c25_a_copy_to_a_device_is_not_waited_for(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if device == "cpu":
        monkeypatch.setattr("brimful.masks.flex.has_kernel", lambda device: True)
    send, sent = torch.Tensor.to, []

    def watched(tensor: torch.Tensor, *args: Any, **settings: Any) -> torch.Tensor:
        if device in args:
            sent.append(settings.get("non_blocking", False))
        return send(tensor, *args, **settings)

    monkeypatch.setattr(torch.Tensor, "to", watched)
    bf.masks.block_mask([0, 300], prefix_lengths=[9], device=device)
    assert sent == [True, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 2}, "7 slots are not 2 rows"),
        ({"rows": 0}, "not 0 rows"),
        ({"total": -1}, "-1 slots"),
        ({"device": "cpu"}, "leave device out"),
        ({"block_size": 0}, "block_size is 0"),
        ({"window": 0}, "window is 0"),
        ({"prefix_lengths": torch.tensor([1.0])}, "integers of one dimension"),
        ({"prefix_lengths": torch.tensor([1, 2])}, "2 prefixes of 1 segments"),
    ],
)
def test_what_a_device_is_not_asked_for(device: str, change: dict[str, Any], message: str) -> None:
    with pytest.raises(bf.PlanError, match=message):
        bf.masks.block_mask(torch.tensor([0, 7], device=device), **change)
    with pytest.raises(bf.PlanError, match="integers of one dimension"):
        bf.masks.block_mask(torch.tensor([[0, 7]], device=device), total=7)


def test_a_total_is_not_asked_of_the_host() -> None:
    with pytest.raises(bf.PlanError, match="leave total out"):
        bf.masks.block_mask([0, 7], total=7)
