"""Ctrl-C at any moment: the stream and the state keep their place, and nothing is left behind."""

import random
import signal
import subprocess
import sys

import numpy as np
import pytest

import brimful as bf
from programs import check_quiet, run, source


@pytest.mark.parametrize("num_workers", [0, 2])
def test_after_an_interrupt_the_iterator_and_the_state_agree_on_the_place(num_workers):
    done = run(
        f"""
        import random
        BATCHES = 400
        documents = [np.full(64, i) for i in range(BATCHES)]
        l = bf.DataLoader(bf.open(documents), seq_len=64, num_workers={num_workers}, timeout=30)
        armed = False
        def interrupt(*_):
            global armed
            if armed:
                armed = False
                raise KeyboardInterrupt
        signal.signal(signal.SIGINT, interrupt)

        over = False
        def shoot():
            rng = random.Random(5)
            while not over:
                time.sleep(rng.random() ** 3 * 0.01)
                os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=shoot, daemon=True).start()

        def position():
            place = l.state_dict()["cursor"]
            return place["epoch"] * BATCHES + place["bin"]

        rng = random.Random(6)
        iterator, expected, interrupts = iter(l), 0, 0
        while interrupts < 150:
            try:
                armed = True
                while True:
                    batch = next(iterator, None)
                    if batch is None:
                        assert expected % BATCHES == 0, expected
                        iterator = iter(l)
                        expected = position()
                        continue
                    number = int(batch["input_ids"][0, 0])
                    assert number == expected % BATCHES, (number, expected)
                    expected += 1
            except KeyboardInterrupt:
                interrupts += 1
            # A batch that was on its way out of next() may be gone with the interrupt, no more.
            assert 0 <= position() - expected <= 1, (position(), expected)
            expected = position()
            if rng.random() < 0.3:
                l.load_state_dict(l.state_dict())
                iterator = iter(l)
        over = True
        armed = False
        assert l.state_dict()["cursor"]["epoch"] > 0
        del iterator, batch
        check_threads(0)
        """
    )
    check_quiet(done)


def test_counting_the_batches_of_a_long_epoch_can_be_interrupted():
    loader = bf.DataLoader(bf.open(np.zeros((400_000, 4), np.int32)), seq_len=4, window=4)
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            len(loader)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert len(loader) == 400_000


@pytest.mark.parametrize("ends", ["pass", "break"])  # by itself, and in mid-pass
@pytest.mark.parametrize("num_workers", [0, 2])
def test_c88_an_interrupted_program_ends_as_interrupted_programs_do(num_workers, ends):
    rng = random.Random(num_workers)
    program = f"""
        short = bf.open([np.arange(64)] * 20)  # so that most interrupts fall where a pass ends
        l = bf.DataLoader(short, seq_len=64, num_workers={num_workers})
        print("ready", flush=True)
        while True:
            for batch in l:
                {ends}
        """
    for _ in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", source(program)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(rng.random() * 0.1)
                process.send_signal(signal.SIGINT)
                _, stderr = process.communicate(timeout=60)
            finally:
                process.kill()
        assert stderr.splitlines()[0] == "Traceback (most recent call last):"
        assert stderr.splitlines()[-1] == "KeyboardInterrupt"
        assert stderr.count("Traceback") == 1
        assert process.returncode == -signal.SIGINT
