"""Python threads around a loader: they iterate, look on, close, or are left behind at the end."""

import pytest

from programs import check_quiet, run


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_daemon_thread_in_next_does_not_disturb_the_interpreters_end(num_workers):
    program = f"""
        l = loader(num_workers={num_workers})
        begun = threading.Semaphore(0)
        def consume():
            for epoch in range(10**9):
                for batch in l:
                    begun.release()
        for _ in range(3):
            threading.Thread(target=consume, daemon=True).start()
        for _ in range(50):
            begun.acquire()
        """
    for _ in range(5):
        check_quiet(run(program))


def test_a_daemon_thread_waiting_for_a_long_plan_does_not_disturb_the_interpreters_end():
    done = run(
        """
        corpus = bf.open(np.zeros((1_000_000, 2), np.uint8))
        l = bf.DataLoader(corpus, seq_len=64, window=2**40, packing="best_fit_decreasing")
        threading.Thread(target=lambda: next(iter(l)), daemon=True).start()
        while not threads():
            time.sleep(0.001)
        """
    )
    check_quiet(done)


def test_packing_in_a_daemon_thread_does_not_disturb_the_interpreters_end():
    done = run(
        """
        lengths = np.full(3_000_000, 7)
        begun = threading.Event()
        def pack():
            while True:
                begun.set()
                bf.pack(lengths, 4096)
        threading.Thread(target=pack, daemon=True).start()
        begun.wait()
        """
    )
    check_quiet(done)


def test_iterators_in_many_threads_give_each_the_whole_stream():
    done = run(
        """
        l = loader(num_workers=2)
        wanted = [int(batch["input_ids"].sum()) for batch in loader(num_workers=0)]
        found, looks = [], 0
        def consume():
            l.set_epoch(0)
            found.append([int(batch["input_ids"].sum()) for batch in l])
        consumers = [threading.Thread(target=consume) for _ in range(6)]
        for thread in consumers:
            thread.start()
        while any(thread.is_alive() for thread in consumers):
            stats, state = l.stats(), l.state_dict()
            assert 0 <= stats.batches <= 6 * len(wanted)
            assert 0 <= state["cursor"]["bin"] and len(l) == len(wanted)
            looks += 1
        assert found == [wanted] * 6
        assert l.stats().batches == 6 * len(wanted) and looks > 0
        check_threads(0)
        """
    )
    check_quiet(done)


def test_closing_from_other_threads_ends_a_stream_with_an_error_and_never_hangs():
    done = run(
        """
        l = loader(num_workers=3)
        outcomes = set()
        def consume():
            try:
                for batch in l:
                    pass
                outcomes.add("end")
            except bf.BrimfulError as error:
                outcomes.add("closed" if "clos" in str(error) else str(error))
        for attempt in range(60):
            consumer = threading.Thread(target=consume)
            closers = [threading.Thread(target=l.close) for _ in range(3)]
            consumer.start()
            time.sleep(0.0002 * (attempt % 20))
            for closer in closers:
                closer.start()
            # One that closes before the iterator exists leaves it alone.
            while consumer.is_alive():
                l.close()
                consumer.join(0.01)
            for closer in closers:
                closer.join()
        assert "closed" in outcomes and outcomes <= {"closed", "end"}, outcomes
        check_threads(0)
        """
    )
    check_quiet(done)


def test_one_iterator_is_asked_by_one_thread_at_a_time():
    done = run(
        """
        l = loader(num_workers=2)
        iterator = iter(l)
        found = []
        def consume():
            while True:
                try:
                    batch = next(iterator, None)
                except bf.BrimfulError as error:
                    assert "already being asked" in str(error)
                    continue
                if batch is None:
                    return
                found.append(int(batch["input_ids"].sum()))
        threads_ = [threading.Thread(target=consume) for _ in range(4)]
        for thread in threads_:
            thread.start()
        for thread in threads_:
            thread.join()
        wanted = [int(batch["input_ids"].sum()) for batch in loader(num_workers=0)]
        assert sorted(found) == sorted(wanted)
        """
    )
    check_quiet(done)


def test_batches_may_die_in_any_thread():
    done = run(
        """
        import queue
        handed = queue.Queue(maxsize=8)
        wrong = []
        def drop():
            while (item := handed.get()) is not None:
                number, batch = item
                if batch["input_ids"].sum() != number:
                    wrong.append(number)
                del item, batch
        droppers = [threading.Thread(target=drop) for _ in range(4)]
        for dropper in droppers:
            dropper.start()
        l = loader(num_workers=2, depth=2)
        for batch in l:
            handed.put((batch["input_ids"].sum(), batch))
        for dropper in droppers:
            handed.put(None)
        for dropper in droppers:
            dropper.join()
        assert not wrong
        """
    )
    check_quiet(done)
