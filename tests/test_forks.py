"""Processes that come from one with running threads: its children, and those of torch's loader."""

import pytest

from programs import check_quiet, run


def test_c87_fifty_children_forked_beside_running_threads_read_loaders_of_their_own():
    done = run(
        """
        l = loader(num_workers=3)
        iterator = iter(l)
        wanted = [int(b["input_ids"].sum()) for b, _ in zip(loader(num_workers=0), range(10))]
        for round in range(50):
            batch = next(iterator, None)
            if batch is None:
                iterator = iter(l)
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                own = loader(num_workers=round % 3)
                found = [int(b["input_ids"].sum()) for b, _ in zip(own, range(10))]
                os._exit(0 if found == wanted else 1)
            assert os.waitpid(child, 0)[1] == 0, round
        """,
        deadline=180,
    )
    check_quiet(done)


def test_a_child_lets_go_of_what_it_inherited_without_waiting_for_anyone():
    done = run(
        """
        import gc
        for round in range(20):
            l = loader(num_workers=4)
            iterator = iter(l)
            batches = [next(iterator), next(iterator)]
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                assert l.stats().batches == 2 and l.state_dict()["cursor"]["bin"] == 4
                del batches
                iterator.close()
                l.close()
                del iterator, l
                gc.collect()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0, round
            assert [int(b["input_ids"].sum()) for b in batches] == [
                int(b["input_ids"].sum()) for b, _ in zip(loader(num_workers=0), range(2))
            ]
        """,
        deadline=180,
    )
    check_quiet(done)


def test_a_state_goes_on_in_a_forked_child():
    done = run(
        """
        l = loader()
        iterator = iter(l)
        for _ in range(7):
            next(iterator)
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            l.load_state_dict(l.state_dict())
            found = [int(b["input_ids"].sum()) for b in l]
            wanted = [int(b["input_ids"].sum()) for b in loader()][7:]
            os._exit(0 if found == wanted else 1)
        assert os.waitpid(child, 0)[1] == 0
        """
    )
    check_quiet(done)


@pytest.mark.parametrize(
    "start",
    ["fork", *(pytest.param(start, marks=pytest.mark.slow) for start in ("spawn", "forkserver"))],
)
def test_c87_torchs_workers_make_loaders_of_their_own_however_they_start(start, tmp_path):
    done = run(
        f"""
        import torch, torch.utils.data
        path = {str(tmp_path / "tokens.npy")!r}
        np.save(path, np.arange(40 * 8, dtype=np.int32).reshape(40, 8))
        with open({str(tmp_path / "rows.py")!r}, "w") as file:
            file.write(
                "import brimful as bf, torch\\n"
                "class Rows(torch.utils.data.IterableDataset):\\n"
                "    def __init__(self, path): self.path = path\\n"
                "    def __iter__(self):\\n"
                "        info = torch.utils.data.get_worker_info()\\n"
                "        ranks = dict(rank=info.id, world_size=info.num_workers)\\n"
                "        yield from bf.DataLoader(self.path, seq_len=8, **ranks)\\n"
                "def as_it_is(batch): return batch\\n"
            )
        sys.path.insert(0, {str(tmp_path)!r})
        import rows
        running = loader()
        iterator = iter(running)
        next(iterator)  # threads of the parent's own
        outer = torch.utils.data.DataLoader(
            rows.Rows(path), num_workers=2, batch_size=None, timeout=100,
            collate_fn=rows.as_it_is,
            multiprocessing_context={start!r}, persistent_workers=True,
        )
        for epoch in range(2):
            batches = list(outer)
            assert all(batch.cu_seqlens.tolist() == [0, 8] for batch in batches)
            found = sorted(int(batch["input_ids"][0, 0]) for batch in batches)
            assert found == list(range(0, 320, 8)), found
        del outer
        """,
        deadline=180,
    )
    check_quiet(done)


def test_c87_a_loader_opened_before_torchs_workers_is_fresh_in_each_of_them():
    done = run(
        """
        import torch, torch.utils.data
        class Around(torch.utils.data.IterableDataset):
            def __init__(self, inner):
                self.inner = inner
            def __iter__(self):
                return iter(self.inner)
        l = loader()
        wanted = [int(b["input_ids"].sum()) for b in loader()]
        next(iter(l))
        outer = torch.utils.data.DataLoader(Around(l), num_workers=2, batch_size=None, timeout=100)
        found = [int(batch["input_ids"].sum()) for batch in outer]
        assert sorted(found) == sorted(2 * wanted)
        inherited = iter(l)
        next(inherited)
        outer = torch.utils.data.DataLoader(
            Around(inherited), num_workers=2, batch_size=None, timeout=100
        )
        try:
            list(outer)
        except bf.BrimfulError as error:
            assert "before fork" in str(error)
        else:
            raise AssertionError("an iterator of another process gave batches")
        """,
        deadline=180,
    )
    check_quiet(done)
