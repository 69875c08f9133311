"""Less of the machine than usual: memory, files, threads, standard streams."""

import os
import resource

import numpy as np
import pytest

from programs import check_quiet, run


@pytest.mark.parametrize("num_workers", [0, 1, 4])
@pytest.mark.parametrize("seq_len", [512, 65536])
def test_without_memory_there_is_an_error_and_with_it_the_stream_is_right(num_workers, seq_len):
    done = run(
        f"""
        import resource
        documents = [i * 1000 + np.arange(1 + i % 300) for i in range(5000)]
        corpus = bf.open(documents)
        tokens = sum(map(len, documents))

        def size():
            return 4096 * int(open("/proc/self/statm").read().split()[0])

        def attempt(extra, kept):
            '''What an epoch ends with, in this many bytes above what the process has.'''
            found = 0
            unlimited = resource.RLIM_INFINITY
            resource.setrlimit(resource.RLIMIT_AS, (size() + extra, unlimited))
            try:
                l = bf.DataLoader(corpus, batch_size=4, seq_len={seq_len}, depth=3,
                                  num_workers={num_workers}, packing="best_fit_decreasing")
                for batch in l:
                    found += batch.num_tokens
                    kept.append(batch)
            except (MemoryError, bf.BrimfulError) as error:
                return str(error)  # its traceback would keep the iterator
            finally:
                resource.setrlimit(resource.RLIMIT_AS, (unlimited, unlimited))
            assert found == tokens
            return None

        fine, ends = [*range(0, 2 << 20, 128 << 10)], []
        for extra in [*fine, *range(2 << 20, 160 << 20, 10 << 20), 2 << 30]:
            ends.append(attempt(extra, []))
        assert ends[0] is not None, "the limit was not felt"
        assert ends[-1] is None, ends[-1]
        check_threads(0)
        """,
        deadline=180,
    )
    check_quiet(done)


def test_a_consumer_that_ran_out_of_memory_lets_go_and_goes_on():
    done = run(
        """
        import resource
        l = loader(seq_len=65536, num_workers=1, depth=1, batch_size=2)
        wanted = [batch["input_ids"].sum() for batch in loader(seq_len=65536)]
        iterator = iter(l)
        kept = [next(iterator)]
        found = [kept[0]["input_ids"].sum()]
        size = 4096 * int(open("/proc/self/statm").read().split()[0])
        unlimited = resource.RLIM_INFINITY
        resource.setrlimit(resource.RLIMIT_AS, (size + (4 << 20), unlimited))
        refused = 0
        while True:
            try:
                batch = next(iterator, None)
            except bf.BrimfulError as error:
                assert "cannot be allocated" in str(error), error
                assert kept and refused < 100
                refused += 1
                kept.clear()
                continue
            if batch is None:
                break
            found.append(batch["input_ids"].sum())
            kept.append(batch)
            del batch
        resource.setrlimit(resource.RLIMIT_AS, (unlimited, unlimited))
        assert refused > 0
        assert found == wanted
        """
    )
    check_quiet(done)


@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_many_files_need_few_descriptors(tmp_path, io):
    for shard in range(300):
        np.save(tmp_path / f"{shard:03}.npy", np.full((4, 8), shard, np.uint16))
    done = run(
        f"""
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
        corpus = bf.open({str(tmp_path / "*.npy")!r})
        l = bf.DataLoader(corpus, seq_len=8, shuffle=True, num_workers=4, io={io!r})
        for epoch in range(2):
            found = sorted(int(batch["input_ids"][0, 0]) for batch in l)
            assert found == [shard for shard in range(300) for _ in range(4)]
        """
    )
    check_quiet(done)


@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_no_descriptor_at_all_is_an_error_of_the_system_and_passes(tmp_path, io):
    path = tmp_path / "tokens.npy"
    np.save(path, np.arange(80, dtype=np.uint16).reshape(10, 8))
    done = run(
        f"""
        import resource
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        corpus = bf.open({str(path)!r})
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            bf.open({str(path)!r})
        except OSError as error:
            assert "Too many open files" in str(error), error
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        assert len(bf.open({str(path)!r})) == 10
        assert sum(1 for _ in bf.DataLoader(corpus, seq_len=8, io={io!r})) == 10
        """
    )
    check_quiet(done)


def test_threads_that_cannot_be_started_are_an_error():
    done = run(
        """
        import resource
        l = loader(num_workers=1000)
        unlimited = resource.RLIM_INFINITY
        size = 4096 * int(open("/proc/self/statm").read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (size + (200 << 20), unlimited))
        try:
            iter(l)
        except bf.BrimfulError as error:
            assert "of 1000 cannot be started" in str(error), error
            assert "lower num_workers" in str(error)
        else:
            raise AssertionError
        resource.setrlimit(resource.RLIMIT_AS, (unlimited, unlimited))
        check_threads(0)
        assert sum(1 for _ in loader(num_workers=2)) == sum(1 for _ in loader(num_workers=0))
        """
    )
    check_quiet(done)


@pytest.mark.parametrize("closed", [(0,), (0, 1), (0, 1, 2), (1, 2), (2,)])
def test_a_process_without_standard_streams_is_served_as_well(tmp_path, closed):
    """A file that is opened then gets the number of one of them."""
    path = tmp_path / "tokens.bin"
    np.arange(8000, dtype=np.uint16).tofile(path)
    done = run(
        f"""
        l = bf.DataLoader(bf.open({str(path)!r}, dtype="uint16", eos=7), seq_len=64, num_workers=2)
        assert sum(batch.num_tokens for batch in l) == 8000
        l = bf.DataLoader(l.corpus, seq_len=64, io="pread")
        assert sum(batch.num_tokens for batch in l) == 8000
        """,
        preexec_fn=lambda: [os.close(number) for number in closed],
    )
    check_quiet(done)


def test_stacks_of_threads_may_be_small():
    done = run(
        """
        import threading
        threading.stack_size(64 << 10)
        found = []
        def consume():
            found.append(sum(batch.num_tokens for batch in loader(num_workers=2)))
        thread = threading.Thread(target=consume)
        thread.start()
        thread.join()
        assert found == [sum(batch.num_tokens for batch in loader(num_workers=0))]
        """,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (256 << 10, 256 << 10)),
    )
    check_quiet(done)
