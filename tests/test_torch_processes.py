"""Processes around torch's path: forks, early ends, interrupts and exits leave nothing behind."""

import textwrap

import pytest

from programs import check_quiet, run

LOADER = """
import torch, torch.utils.data, multiprocessing
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 400
    def __getitem__(self, index): return torch.full((8,), index)
def torchs(num_workers, **how):
    return bf.DataLoader(Rows(), 4, num_workers=num_workers, **how)
def check_workers():
    begun = time.monotonic()
    while multiprocessing.active_children():
        assert time.monotonic() - begun < 60, multiprocessing.active_children()
        time.sleep(0.01)
"""


def program(text):
    return LOADER + textwrap.dedent(text)


@pytest.mark.parametrize(("inner", "rounds"), [(0, 50), (2, 2)])
def test_c87_forked_children_make_loaders_while_workers_run(inner, rounds):
    """The parent's iterator is alive, with its queues, when the children begin."""
    done = run(
        program(
            f"""
            l = torchs(2, persistent_workers=True)
            iterator = iter(l)
            for _ in range({rounds}):
                next(iterator)
                child = os.fork()
                if child == 0:
                    signal.alarm(30)
                    batches = iter(torchs({inner}, shuffle=True))
                    for _ in range(10):
                        assert next(batches).shape == (4, 8)
                    state = l.state_dict()
                    again = torchs({inner})
                    again.load_state_dict(state)
                    assert next(iter(again))[0, 0] == 4 * state["batches"]
                    del batches
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
            assert len(list(iterator)) == 100 - {rounds}
            """
        ),
        deadline=200,
    )
    check_quiet(done)


def test_c87_a_native_loader_lives_in_the_workers_of_torchs_path():
    done = run(
        program(
            """
            class Around(torch.utils.data.IterableDataset):
                def __iter__(self):
                    return (int(batch["input_ids"].sum()) for batch in loader())
            wanted = [int(batch["input_ids"].sum()) for batch in loader()]
            running = iter(loader())
            next(running)  # threads of the parent's own
            outer = bf.DataLoader(Around(), None, num_workers=2, timeout=100)
            assert outer.explain().path == "torch"
            assert sorted(outer) == sorted(2 * wanted)
            """
        ),
        deadline=200,
    )
    check_quiet(done)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_c88_early_ends_join_workers_and_say_nothing(num_workers):
    done = run(
        program(
            f"""
            for how in ({{}}, {{"prefetch_factor": 4, "persistent_workers": True}}):
                l = torchs({num_workers}, **(how if {num_workers} else {{}}))
                for batch in l:
                    break
                state = l.state_dict()
                assert state["batches"] == 1
                del l
                check_workers()
            l = torchs({num_workers})
            first, second = iter(l), iter(l)
            assert next(first)[0, 0] == next(second)[0, 0] == 0
            del first
            assert next(second)[0, 0] == 4
            """
        ),
        deadline=120,
    )
    check_quiet(done)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_c88_an_interrupt_in_a_batch_ends_the_loop_and_the_batch_comes_after_a_resume(num_workers):
    done = run(
        program(
            f"""
            class Slow(Rows):
                def __getitem__(self, index):
                    if index == 8:
                        time.sleep(1000)
                    return super().__getitem__(index)
            slow = bf.DataLoader(Slow(), 4, num_workers={num_workers})
            iterator = iter(slow)
            next(iterator), next(iterator)
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                next(iterator)
            except KeyboardInterrupt:  # its traceback holds the iterator until the end of this
                state = slow.state_dict()
            again = torchs({num_workers})
            again.load_state_dict(state)
            assert next(iter(again))[0, 0] == 8
            del iterator
            check_workers()
            """
        ),
        deadline=120,
    )
    check_quiet(done)


@pytest.mark.parametrize(
    "ending", ["pass", "sys.exit(0)", "threading.Timer(0, next, (iterator,)).start()"]
)
def test_c88_the_interpreter_exits_with_live_iterators(ending):
    done = run(
        program(
            f"""
            l = torchs(2, persistent_workers=True)
            iterator = iter(l)
            next(iterator)
            other = iter(torchs(1))
            {ending}
            """
        ),
        deadline=60,
    )
    check_quiet(done)
