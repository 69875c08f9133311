"""Leaving early, in every way: threads end, nothing hangs, nothing is printed that should not be.

Each program runs in an interpreter of its own, under a deadline.
"""

import pytest

from programs import run


@pytest.mark.parametrize(
    "program",
    [
        "next(iter(loader()))",
        "iterator = iter(loader()); next(iterator)",
        "loader_ = loader(); iterator = iter(loader_); batch = next(iterator)",
        "iterators = [iter(l) for l in [loader()] * 3]; [next(i) for i in iterators]",
        "batches = list(loader())",
        "iterator = iter(loader()); next(iterator); del iterator",
        "l = loader(); i = iter(l); l.close(); l.close()",
        "sys.exit(next(iter(loader())).num_tokens * 0)",
        "iterator = iter(loader()); next(iterator); kept = iterator.__next__",
        "import atexit; l = loader(); atexit.register(lambda: next(iter(l)))",
        "iterator = iter(loader(num_workers=0)); next(iterator)",
    ],
)
def test_the_interpreter_ends_quietly_with_live_iterators(program):
    done = run(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_threads_end_with_the_iterator_the_loader_and_the_epoch():
    done = run(
        """
        check_threads(0)
        l = loader()
        iterator = iter(l)
        next(iterator)
        check_threads(4)
        del iterator
        check_threads(0)
        for batch in l:
            break
        check_threads(0)  # a broken loop lets its iterator go
        for batch in l:
            pass
        check_threads(0)
        iterator = iter(l)
        next(iterator)
        l.close()
        check_threads(0)
        try:
            next(iterator)
        except bf.BrimfulError as error:
            assert "clos" in str(error)
        else:
            raise AssertionError("a closed iterator gave a batch")
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_at_any_line_leaves_no_thread():
    done = run(
        """
        class Interrupt:
            # Raises at a line of the loader's own, counted from the first of a pass.
            def __init__(self, line):
                self.lines_to_go = line
            def __call__(self, frame, event, arg):
                if not frame.f_code.co_filename.endswith(("loader.py", "iteration.py")):
                    return None
                if event == "line":
                    self.lines_to_go -= 1
                    if self.lines_to_go == 0:
                        raise KeyboardInterrupt
                return self

        l = loader(num_workers=2, batch_size=300)
        batches = sum(1 for _ in l)
        line = 0
        while line == 0 or interrupt.lines_to_go <= 0:  # until a pass has fewer lines
            line += 1
            interrupt = Interrupt(line)
            sys.settrace(interrupt)
            try:
                for batch in l:
                    pass
            except KeyboardInterrupt:
                pass
            sys.settrace(None)
            check_threads(0)
        assert line > 20
        assert sum(1 for _ in l) == batches
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_ctrl_c_reaches_a_blocked_next_and_leaves_no_thread():
    done = run(
        """
        l = loader(depth=1, num_workers=1, max_slots=2)
        iterator = iter(l)
        next(iterator)
        def interrupt():
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            while True:  # epoch after epoch, until the signal
                for batch in l:
                    pass
        except KeyboardInterrupt:
            print("interrupted")
        del iterator
        assert sum(1 for _ in l) > 0
        check_threads(0)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


@pytest.mark.parametrize("how", ["iterate", "exit", "new"])
def test_c87_a_forked_child_gets_an_error_at_once_or_a_loader_of_its_own(how):
    done = run(
        f"""
        how = {how!r}
        l = loader()
        iterator = iter(l)
        next(iterator)
        for _ in range(5):
            child = os.fork()
            if child == 0:
                if how == "iterate":
                    try:
                        next(iterator)
                    except bf.BrimfulError as error:
                        os._exit(0 if "before fork" in str(error) else 1)
                    os._exit(2)
                if how == "new":
                    count = sum(1 for _ in loader())
                    fresh = sum(1 for _ in l)
                    os._exit(0 if count == fresh > 10 else 1)
                sys.exit(0)
            _, status = os.waitpid(child, 0)
            assert status == 0, (how, status)
        assert sum(1 for _ in iterator) > 10
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_loader_works_inside_torchs_worker_processes():
    done = run(
        """
        import torch
        class Rows(torch.utils.data.IterableDataset):
            def __iter__(self):
                info = torch.utils.data.get_worker_info()
                for batch in loader(rank=info.id, world_size=info.num_workers, batch_size=1):
                    if batch.num_tokens:  # a rank without a last row gets a dummy
                        yield batch["input_ids"].clone()
        def documents(rows):
            return [row for batch in rows for row in batch.reshape(-1, 512)[:, 0].tolist()]
        inside = documents(torch.utils.data.DataLoader(Rows(), num_workers=2, batch_size=None))
        alone = documents(b["input_ids"] for b in loader(batch_size=1))
        assert sorted(inside) == sorted(alone)
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_errors_of_threads_reach_next_in_their_place():
    done = run(
        """
        good = [np.arange(8)] * 50
        corpus = bf.open([*good, np.full(8, 99), *good])
        for workers in (0, 1, 8):
            rule = {"vocab_size": 50, "bad_documents": "error"}
            l = bf.DataLoader(corpus, seq_len=8, num_workers=workers, depth=8, **rule)
            iterator = iter(l)
            for _ in range(50):
                next(iterator)
            for _ in range(2):
                try:
                    next(iterator)
                except bf.FormatError as error:
                    assert "document 50" in str(error)
                else:
                    raise AssertionError
            assert l.state_dict()["cursor"]["bin"] == 50
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_that_shrinks_under_us_is_an_error_and_not_the_end(tmp_path):
    done = run(
        f"""
        path = {str(tmp_path / "tokens.bin")!r}
        np.arange(1 << 20, dtype=np.uint16).tofile(path)
        corpus = bf.open(path, dtype="uint16")
        for workers in (0, 2):
            l = bf.DataLoader(corpus, seq_len=4096, num_workers=workers, packing="concat")
            os.truncate(path, 1 << 20)
            count = 0
            try:
                for batch in l:
                    count += 1
            except bf.ReadError as error:
                assert "tokens.bin" in str(error)
            else:
                raise AssertionError("half of the file is gone")
            assert count == 0  # what is before the cut may be new
            np.arange(1 << 20, dtype=np.uint16).tofile(path)  # restored, in place
            l.load_state_dict(l.state_dict())
            assert sum(1 for _ in l) == 256
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_consumer_that_keeps_everything_grows_the_ring_up_to_the_limit():
    done = run(
        """
        l = loader()
        kept = list(l)
        wanted = list(loader(num_workers=0))
        assert all((a["input_ids"] == b["input_ids"]).all() for a, b in zip(kept, wanted))
        l = loader(max_slots=6)
        kept = []
        try:
            for batch in l:
                kept.append(batch)
        except bf.RingExhausted as error:
            assert "max_slots" in str(error)
            assert len(kept) == 6
        else:
            raise AssertionError
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_index_that_shrinks_under_us_is_an_error_and_not_the_end(tmp_path):
    done = run(
        f"""
        folder = {str(tmp_path / "shards")!r}
        with bf.ShardWriter(folder, dtype="uint16") as writer:
            for i in range(20_000):
                writer.add(np.arange(8), loss_mask=[1] * 8)
        corpus = bf.open(folder)
        for name in sorted(os.listdir(folder)):
            if name.endswith((".idx", ".loss.bin")):
                os.truncate(os.path.join(folder, name), 4096)
        for workers in (0, 2):
            l = bf.DataLoader(corpus, seq_len=64, num_workers=workers, window=100, shuffle=True)
            attempts = (list, len, lambda l: l.state_dict(), lambda l: l.corpus[19_999])
            for attempt in (*attempts, lambda l: bf.open(folder), lambda l: corpus.lengths):
                try:
                    attempt(l)
                except (bf.ReadError, bf.FormatError) as error:
                    assert "shrank" in str(error) or isinstance(error, bf.FormatError)
                else:
                    raise AssertionError
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
