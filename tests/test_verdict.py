"""Verdicts of made-up profiles: the seconds named are those that a run without the cause saves."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimful.profiling.figures import (
    CAUSES,
    Finding,
    LoaderFacts,
    Profile,
    ProfileStats,
    Verdict,
)
from brimful.profiling.losses import depth_needed, pace
from brimful.profiling.verdict import IN_WORDS, describe, verdict
from brimful.times import ThreadTimes
from brimful.wording import percent
from pipeline_model import device, profile_of

N = 400


def found(result: Verdict) -> dict[str, float]:
    return {finding.cause: finding.seconds for finding in result.findings}


def top(result: Verdict) -> Finding:
    return result.findings[0]


def test_storage_is_named_with_the_seconds_that_reads_of_no_time_would_save() -> None:
    slow = profile_of([0.050] * N, [0.010] * N, workers=2, blocked=[0.045] * N)
    without = profile_of([0.005] * N, [0.010] * N, workers=2)
    saved = slow.stats.stall_seconds - without.stats.stall_seconds
    result = verdict(slow)
    assert top(result).cause == "storage"
    assert top(result).seconds == pytest.approx(saved, rel=0.05)
    assert "90 %" in top(result).figure
    assert "num_workers=6" in top(result).advice


def test_filling_that_all_cores_cannot_do_in_time_is_named_fill() -> None:
    slow = profile_of([0.100] * N, [0.010] * N, workers=4, cores=4)
    result = verdict(slow)
    assert top(result).cause == "fill"
    assert top(result).seconds == pytest.approx(N * 0.015, rel=0.05)
    assert set(found(result)) == {"fill"}
    assert "num_workers" not in top(result).advice


def test_filling_that_more_cores_would_do_in_time_is_named_threads() -> None:
    slow = profile_of([0.050] * N, [0.010] * N, workers=1, cores=8)
    more = profile_of([0.050] * N, [0.010] * N, workers=6, cores=8)
    saved = slow.stats.stall_seconds - more.stats.stall_seconds
    result = verdict(slow)
    assert top(result).cause == "threads"
    assert top(result).seconds == pytest.approx(saved, rel=0.05)
    assert "num_workers=6" in top(result).advice


def test_a_loop_that_makes_its_batches_lacks_threads_where_the_work_is_its_own() -> None:
    result = verdict(profile_of([0.020] * N, [0.030] * N, workers=0, cores=2))
    assert top(result).cause == "threads"
    assert top(result).seconds == pytest.approx((N - 1) * 0.020)
    assert "num_workers=1" in top(result).advice


def test_a_loop_that_makes_its_batches_waits_for_storage_where_it_does_not_work() -> None:
    loads, blocked = [0.020] * N, [0.018] * N
    made = profile_of(loads, [0.030] * N, workers=0, blocked=blocked)
    result = verdict(made)  # one worker does away with both
    assert found(result) == {"storage": pytest.approx((N - 1) * 0.020)}
    assert "num_workers=1" in top(result).advice
    handed = dataclasses.replace(made, facts=dataclasses.replace(made.facts, kind="iterable"))
    lost = found(verdict(handed))
    assert lost["storage"] == pytest.approx((N - 1) * 0.018)
    assert lost["threads"] == pytest.approx((N - 1) * 0.002)


def test_bursts_that_a_deeper_queue_would_hide_are_named_depth() -> None:
    loads = [0.200 if i % 20 == 10 else 0.005 for i in range(N)]
    steps = [0.020] * N
    shallow = profile_of(loads, steps, workers=1, depth=2)
    result = verdict(shallow)
    assert top(result).cause == "depth"
    needed = depth_needed(shallow, pace(shallow))
    assert needed is not None
    deep = profile_of(loads, steps, workers=1, depth=needed)
    saved = shallow.stats.stall_seconds - deep.stats.stall_seconds
    assert top(result).seconds == pytest.approx(saved, rel=0.05)
    assert str(needed) in top(result).advice


def test_a_loop_that_does_nothing_is_told_no_more_workers_than_cores() -> None:
    idle = profile_of([0.050] * N, [1e-5] * N, workers=1)
    assert "num_workers=8 (it is 1) makes one in 6.25 ms" in top(verdict(idle)).advice
    assert depth_needed(idle, pace(idle)) is None


def test_a_loader_that_keeps_up_leaves_the_consumer() -> None:
    result = verdict(profile_of([0.010] * N, [0.050] * N, workers=2))
    assert [finding.cause for finding in result.findings] == ["consumer"]
    assert top(result).seconds == 0
    assert "keeps up" in result.headline
    assert result.step_seconds == result.without_stall == pytest.approx(0.050)


def test_padding_is_what_steps_spend_on_empty_slots() -> None:
    result = verdict(profile_of([0.010] * N, [0.050] * N, workers=2, slots=1000, tokens=600))
    assert top(result).cause == "padding"
    assert top(result).seconds == pytest.approx(0.4 * N * 0.050)
    assert result.without_padding == result.without_both == pytest.approx(0.6 * 0.050)


def test_a_loader_at_its_limit_gains_nothing_by_packing_alone() -> None:
    padded = profile_of([0.040] * N, [0.010] * N, workers=2, slots=1000, tokens=500)
    result = verdict(padded)
    assert result.step_seconds == pytest.approx(0.020, rel=0.01)
    assert result.without_padding == result.step_seconds
    assert result.without_stall == pytest.approx(0.010, rel=0.01)
    assert result.without_both == pytest.approx(0.005, rel=0.01)


def test_a_loop_that_makes_its_batches_still_makes_them_without_padding() -> None:
    result = verdict(profile_of([0.040] * N, [0.010] * N, workers=0, slots=10, tokens=5))
    assert result.without_padding == pytest.approx(0.040 + 0.005)


def test_the_headline_is_the_first_finding_of_the_same_time() -> None:
    loads = [3.0] + [0.040] * 40
    result = verdict(profile_of(loads, [0.010] * 41, workers=0))
    assert top(result).cause == "first batch"
    assert top(result).seconds == 3.0
    assert result.headline == (
        "The loop waited 91.81 % of the time for data; most is lost to the first batch: 59.88 %."
    )
    assert found(result)["threads"] == pytest.approx(40 * 0.040)


def test_mapped_files_read_cold_are_storage_and_warm_ones_filling() -> None:
    def native(**more: Any) -> Verdict:
        loads, blocked = [0.050] * N, [0.045] * N
        return verdict(
            profile_of(
                loads, [0.010] * N, workers=2, cores=2, blocked=blocked, kind="brimful",
                slots=1000, tokens=1000, **more,
            )
        )  # fmt: skip

    assert top(native(read_bytes=4 * 1000 * N)).cause == "storage"
    assert top(native(read_bytes=0)).cause == "fill"
    far = (ThreadTimes(plan=0.1, read=8.0, fill=1.0), ThreadTimes(read=9.0, fill=1.0))
    assert top(native(read_bytes=0, threads=far)).cause == "storage"
    near = (ThreadTimes(plan=0.1, read=0.5, fill=1.0),)
    assert top(native(read_bytes=0, threads=near)).cause == "fill"


@pytest.mark.parametrize("kind", ["brimful", "torch"])
def test_waits_for_batches_that_are_ready_are_their_way_to_the_loop(kind: Any) -> None:
    quick = profile_of([0.002] * N, [0.010] * N, workers=1, kind=kind)
    handed = [dataclasses.replace(batch, wait=0.001, queue_depth=3) for batch in quick.batches]
    late = dataclasses.replace(handed[50], wait=0.201, queue_depth=0)
    profile = dataclasses.replace(
        quick,
        batches=(*handed[:50], late, *handed[51:]),
        stats=dataclasses.replace(quick.stats, stall_seconds=0.2 + 0.001 * (N - 1)),
    )
    result = found(verdict(profile))
    assert result["copy"] == pytest.approx(0.001 * N, rel=0.01)
    assert result["depth"] == pytest.approx(0.2, rel=0.01)


def test_waits_for_a_full_queue_of_workers_are_their_way_to_the_loop() -> None:
    made = profile_of([0.001] * N, [0.010] * N, workers=1, depth=2)
    waits = [0.001 if i % 3 else 0.016 for i in range(N)]  # where the loop wants for a core, say
    for ready, cause in ((2, "copy"), (1, "depth")):
        batches = tuple(
            dataclasses.replace(batch, wait=wait, queue_depth=ready, first=False)
            for batch, wait in zip(made.batches, waits, strict=True)
        )
        stats = dataclasses.replace(made.stats, stall_seconds=sum(waits))
        result = verdict(dataclasses.replace(made, batches=batches, stats=stats))
        assert top(result).cause == cause
        assert "pin" not in "".join(finding.advice for finding in result.findings)
    assert found(result)["copy"] == pytest.approx(0.001 * N)


@pytest.mark.parametrize(
    ("part", "cause"),
    [("copy_seconds", "copy"), ("handoff_seconds", "consumer"), ("load_seconds", "storage")],
)
def test_a_device_says_what_it_waited_for(part: str, cause: str) -> None:
    slow = profile_of(
        [0.050] * N,
        [0.010] * N,
        workers=2,
        blocked=[0.050] * N,
        starvation=device(N, **{part: 2.0}),
    )
    result = verdict(slow)
    assert top(result).cause == cause
    assert top(result).seconds == pytest.approx(2.0, rel=1e-6)
    share = percent(2.0 / slow.stats.wall_seconds)
    waited = percent((2.0 + slow.stats.first_batch_seconds) / slow.stats.wall_seconds)
    assert f"device waited {waited}" in result.headline
    assert result.headline.endswith(f"{IN_WORDS[cause]}: {share}.")
    assert ("pin_memory" in top(result).advice) == (cause == "copy")
    assert result.without_stall == pytest.approx(result.step_seconds - 2.0 / N)


def test_host_waits_cost_nothing_while_the_device_has_work() -> None:
    waiting = profile_of([0.050] * N, [0.010] * N, workers=2, starvation=device(N))
    result = verdict(waiting)
    assert found(result) == {"consumer": 0.0}
    assert result.without_stall == result.step_seconds


def test_waiting_for_a_slot_is_depth() -> None:
    short = device(N, load_seconds=3.0, ring_seconds=2.0)
    result = found(verdict(profile_of([0.05] * N, [0.01] * N, workers=2, starvation=short)))
    assert result["depth"] == pytest.approx(2.0)
    assert result["threads"] == pytest.approx(1.0)


def test_an_iterable_is_known_by_its_waits_alone() -> None:
    whole = profile_of([0.020] * N, [0.010] * N, workers=0, kind="iterable")
    bare = dataclasses.replace(
        whole,
        facts=dataclasses.replace(whole.facts, workers=None),
        stats=dataclasses.replace(
            whole.stats, load_seconds=None, blocked_seconds=None, loaded_batches=0
        ),
        batches=tuple(dataclasses.replace(b, load=None, blocked=None) for b in whole.batches),
    )
    assert found(verdict(bare)) == pytest.approx(found(verdict(whole)))
    workers = dataclasses.replace(bare, facts=dataclasses.replace(whole.facts, workers=2))
    assert top(verdict(workers)).cause == "fill"
    assert "not measured" in top(verdict(workers)).figure


def test_nothing_and_first_batches_alone_say_so() -> None:
    facts = LoaderFacts(kind="iterable", name="list")
    empty = verdict(Profile(facts=facts, stats=ProfileStats()))
    assert empty.findings == ()
    assert empty.step_seconds is None
    assert describe(empty, Profile(facts=facts, stats=ProfileStats())) == empty.headline
    single = profile_of([0.1], [0.1], workers=0)
    assert "Only first batches" in verdict(single).headline


def test_the_text_names_every_finding_its_seconds_and_the_gains() -> None:
    padded = profile_of(
        [0.050] * N, [0.010] * N, workers=2, blocked=[0.045] * N, slots=1000, tokens=500
    )
    result = verdict(padded)
    text = describe(result, padded)
    assert text.startswith(result.headline)
    assert "1. Reading from storage: 5.97 s lost" in text
    assert "with zero stall 10 ms (2.5" in text
    assert "with neither 5 ms" in text
    for finding in result.findings:
        assert finding.figure in text
        assert finding.advice in text
    slept = dataclasses.replace(
        padded, facts=dataclasses.replace(padded.facts, simulated_step=0.010)
    )
    assert "only slept" in describe(verdict(slept), slept)
    assert "slept" not in text


times = st.floats(0, 0.2)


@given(
    runs=st.lists(st.tuples(times, times), min_size=1, max_size=60),
    share=st.floats(0, 1),
    workers=st.integers(0, 4),
    depth=st.integers(1, 6),
    cores=st.integers(1, 8),
    kind=st.sampled_from(["brimful", "torch", "iterable"]),
    tokens=st.integers(0, 10),
    measured=st.booleans(),
)
def test_causes_of_waiting_add_up_to_the_stall_of_any_run(
    runs: list[tuple[float, float]],
    share: float,
    workers: int,
    depth: int,
    cores: int,
    kind: Any,
    tokens: int,
    measured: bool,
) -> None:
    loads, steps = (list(column) for column in zip(*runs, strict=True))
    unmeasured: dict[str, Any] = {} if measured else {"load_seconds": None, "loaded_batches": 0}
    profile = profile_of(
        loads, steps, workers=workers, depth=depth, blocked=[share * load for load in loads],
        cores=cores, kind=kind, slots=10, tokens=tokens, **unmeasured,
    )  # fmt: skip
    result = verdict(profile)
    lost = found(result)
    waits = sum(lost.get(name, 0.0) for name in ("storage", "fill", "threads", "depth", "copy"))
    stats = profile.stats
    unnamed = 0.01 * 5 * stats.wall_seconds + 1e-9
    assert stats.stall_seconds - unnamed <= waits <= stats.stall_seconds + 1e-9
    assert all(finding.cause in CAUSES for finding in result.findings)
    assert [f.seconds for f in result.findings] == sorted(lost.values(), reverse=True)
    assert sum(lost.values()) <= stats.wall_seconds * (1 + 1e-9) + 1e-9
    gains = (result.step_seconds, result.without_stall, result.without_both)
    assert all(a + 1e-12 >= b >= 0 for a, b in itertools.pairwise(filter(None, gains)))
    assert describe(result, profile)
