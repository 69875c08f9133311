"""Consumers that are slow, keep everything or come and go: what the loader costs them meanwhile."""

from programs import check_quiet, run


def test_threads_use_no_processor_while_the_consumer_takes_its_time():
    done = run(
        """
        def processor_seconds():
            ticks = 0
            for task in threads():
                fields = open(f"/proc/self/task/{task}/stat").read().rsplit(")", 1)[1].split()
                ticks += int(fields[11]) + int(fields[12])
            return ticks / os.sysconf("SC_CLK_TCK")

        l = loader(num_workers=4, depth=3)
        iterator = iter(l)
        next(iterator)
        before = processor_seconds()
        while True:  # until all is made that may be made ahead
            time.sleep(0.2)
            now = processor_seconds()
            if now == before:
                break
            before = now
        time.sleep(3)
        assert processor_seconds() - before < 0.3, "threads that wait for a slot are busy"
        assert sum(1 for _ in iterator) > 100
        """
    )
    check_quiet(done)


def test_a_thread_that_waits_for_a_batch_uses_no_processor():
    """The batch takes long to plan; the consumer sleeps meanwhile."""
    done = run(
        """
        corpus = bf.open(np.zeros((1_500_000, 2), np.uint8))
        l = bf.DataLoader(corpus, seq_len=64, window=2**40, packing="best_fit_decreasing",
                          num_workers=1)
        before = time.thread_time()
        next(iter(l))
        waited = l.stats().first_batch_seconds
        # A core is busy with the plan all the while; this thread is not.
        assert time.thread_time() - before < max(0.2, waited / 2), waited
        """
    )
    check_quiet(done)


def test_a_consumer_that_keeps_every_batch_finds_them_unchanged_at_the_end():
    done = run(
        """
        l = loader(num_workers=3, depth=2)
        kept = []
        for epoch in range(2):
            for batch in l:
                kept.append((batch, batch["input_ids"].copy(), batch["labels"].copy()))
        assert all(
            (batch["input_ids"] == ids).all() and (batch["labels"] == labels).all()
            for batch, ids, labels in kept
        )
        l.close()
        del l
        assert all((batch["input_ids"] == ids).all() for batch, ids, _ in kept)
        """
    )
    check_quiet(done)


def test_a_full_ring_goes_on_when_a_batch_is_let_go():
    done = run(
        """
        wanted = [batch["input_ids"].copy() for batch in loader(num_workers=0)]
        for num_workers in (0, 1, 4):
            l = loader(max_slots=3, num_workers=num_workers)
            iterator, kept, found, refused = iter(l), [], [], 0
            while len(found) < len(wanted):
                try:
                    batch = next(iterator)
                except bf.RingExhausted:
                    refused += 1
                    kept.pop(0)
                    continue
                found.append(batch["input_ids"].copy())
                kept.append(batch)
                del batch
            assert refused >= len(wanted) - 3
            assert all((a == b).all() for a, b in zip(found, wanted))
            assert l.state_dict()["cursor"]["epoch"] == 0
        """
    )
    check_quiet(done)


def test_deleting_in_mid_iteration_gives_everything_back():
    done = run(
        """
        import gc
        for attempt in range(40):
            l = loader(num_workers=attempt % 4, depth=1 + attempt % 3)
            iterator = iter(l)
            batches = [next(iterator) for _ in range(attempt % 5)]
            column = batches[0]["labels"] if batches else None
            parts = [l, iterator, batches]
            del l, iterator, batches
            while parts:  # in another order each time
                parts.pop(attempt % len(parts))
            if column is not None:
                assert column.sum() == column.copy().sum()
        del column
        gc.collect()
        check_threads(0)
        """
    )
    check_quiet(done)
