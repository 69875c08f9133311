"""Loaders with a device in processes that fork, end or are interrupted, on the fake one."""

from __future__ import annotations

from pathlib import Path

import pytest

from programs import check_quiet, run

PROGRAM = """
import gc
import torch
sys.path.insert(0, TESTS)
from fake_cuda import FakeCuda
from brimful import device_loader
cuda = FakeCuda()
device_loader.cuda_of = lambda name: cuda
""".replace("TESTS", repr(str(Path(__file__).parent)))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_forked_child_is_refused_and_calls_nothing(workers: int) -> None:
    done = run(
        PROGRAM
        + f"""
l = loader(device="cuda", num_workers={workers})
iterator = iter(l)
batch = next(iterator)
time.sleep(0.3)  # threads are idle: none holds the fake device's lock
child = os.fork()
if child == 0:
    signal.alarm(30)
    before = cuda.api.count("record") + cuda.api.count("is_capturing")
    for _ in range(2):
        try:
            next(iterator)
        except bf.BrimfulError as error:
            assert "before fork" in str(error)
        else:
            os._exit(1)
    iterator.close()
    l.close()
    del iterator, l, batch
    gc.collect()
    after = cuda.api.count("record") + cuda.api.count("is_capturing")
    os._exit(0 if before == after else 2)
assert os.waitpid(child, 0)[1] == 0
assert sum(1 for _ in iterator) > 10
assert cuda.api.faults == []
"""
    )
    check_quiet(done)


@pytest.mark.parametrize(
    "end",
    [
        "iterator = iter(l); next(iterator)",
        "iterator = iter(l); batches = [next(iterator) for _ in range(5)]",
        "batches = list(l)",
        "kept = [next(iter(l))['labels'] for _ in range(3)]; l.close(); l.close()",
        "sys.exit(next(iter(l)).num_tokens * 0)",
    ],
)
def test_the_interpreter_ends_quietly_with_batches_under_way(end: str) -> None:
    check_quiet(run(PROGRAM + f"l = loader(device='cuda')\n{end}\n"))


def test_threads_end_with_their_iterators_also_after_an_interrupt() -> None:
    done = run(
        PROGRAM
        + """
l = loader(device="cuda", num_workers=3)
for _ in range(3):
    for batch in l:
        break
    check_threads(0)
iterator = iter(l)
next(iterator)
check_threads(3)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        for batch in l:
            pass
except KeyboardInterrupt:
    pass
del iterator
l.close()
check_threads(0)
assert cuda.api.faults == []
"""
    )
    check_quiet(done)
