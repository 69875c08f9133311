"""`brimful profile -- PROGRAM`: the program must not notice, and its loops are told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import brimful as bf
from test_cli import assert_fits

PYTHONPATH = os.environ.get("PYTHONPATH", "")

NUMBERS = """
import os, sys, time
sys.modules["torch"] = None  # faster without
import numpy as np
import brimful as bf

def make():
    documents = [i * 1000 + np.arange(1 + i % 100) for i in range(300)]
    return bf.DataLoader(bf.open(documents), batch_size=2, seq_len=256, shuffle=True, seed=3)
"""


def environment(*first: Path) -> dict[str, str]:
    """PYTHONPATH as it is, from any working folder, with entries before it."""
    paths = [*map(str, first), *map(os.path.abspath, filter(None, PYTHONPATH.split(os.pathsep)))]
    return {**os.environ, "COLUMNS": "80", "PYTHONPATH": os.pathsep.join(paths)}


def command(*program: object, options: tuple[str, ...] = ()) -> list[str]:
    words = [sys.executable, "-m", "brimful.cli", "profile", *options, "--", *program]
    return [str(word) for word in words]


def run(*program: object, options: tuple[str, ...] = (), **how: Any) -> Any:
    return subprocess.run(
        command(*program, options=options),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **{"env": environment(), **how},
    )


def run_json(*program: object, **how: Any) -> tuple[list[str], Any]:
    """Lines that the program wrote to stdout, and the JSON behind them."""
    done = run(*program, options=("--json",), **how)
    assert done.returncode == 0, done.stderr
    *own, empty, report = done.stdout.splitlines()
    assert not empty
    return own, json.loads(report)


@pytest.fixture
def script(tmp_path: Path) -> Any:
    """Writes train.py and gives its path."""

    def write(text: str, *, name: str = "train.py", start: str = NUMBERS) -> Path:
        path = tmp_path / name
        path.write_text(start + textwrap.dedent(text), encoding="utf-8")
        return path

    return write


def test_a_loop_is_told_by_its_line_with_all_its_passes(script: Any, tmp_path: Path) -> None:
    train = script(
        """
        loader = make()
        for epoch in range(2):
            for batch in loader:  # the line
                time.sleep(0.002)
        print(len(loader), loader.stats().tokens)
        """
    )
    line = (
        train.read_text(encoding="utf-8").splitlines().index("    for batch in loader:  # the line")
    )
    own, report = run_json(sys.executable, "train.py", cwd=tmp_path)
    batches, tokens = map(int, own[0].split())
    (loop,) = report["loops"]
    assert loop["title"] == f"train.py:{line + 1}"
    stats = loop["stats"]
    assert (stats["batches"], stats["first_batches"]) == (2 * batches, 2)
    assert stats["tokens"] == tokens
    assert stats["step_seconds"] >= (2 * batches - 2) * 0.002
    assert report["exit_code"] == 0


def test_the_text_goes_to_stderr_and_fits_the_terminal(script: Any) -> None:
    train = script("print('mine')\nfor batch in make(): pass\n")
    done = run(sys.executable, train)
    assert done.returncode == 0
    assert done.stdout == "mine\n"
    assert_fits(done.stderr)
    assert "verdict: " in done.stderr
    assert "\x1b" not in done.stderr  # no terminal, no live display


def test_the_program_gets_the_batches_and_the_iterator_that_it_would_have(script: Any) -> None:
    train = script(
        """
        from brimful.iteration import LoaderIterator
        loader = make()
        batches = iter(loader)
        print(isinstance(batches, LoaderIterator), len(batches), iter(batches) is batches)
        print([int(batch["input_ids"].sum()) for batch in batches])
        print(next(batches, "end"), loader.state_dict()["cursor"])
        print(sys.argv, sys.path, "sitecustomize" in sys.modules, __name__)
        try:
            next(iter(make()), batches.absent)
        except AttributeError as error:
            print(error)
        """
    )
    arguments = ("train.py", "--lr", "3e-4", "--", "-x")
    alone = subprocess.run(
        [sys.executable, *arguments],
        cwd=train.parent,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    watched = run(sys.executable, *arguments, cwd=train.parent)
    expected = alone.stdout.replace("False __main__", "True __main__")  # ours is there
    assert watched.stdout.replace("False __main__", "True __main__") == expected
    assert watched.stdout.splitlines()[0].startswith("True ")


def test_modules_and_children_are_watched(script: Any, tmp_path: Path) -> None:
    """python -m, and processes that the program starts itself, by fork and by spawn."""
    script(
        """
        import multiprocessing

        def work():
            for batch in make(): pass

        if __name__ == "__main__":
            work()
            for method in ("fork", "spawn"):
                child = multiprocessing.get_context(method).Process(target=work)
                child.start()
                child.join()
                assert child.exitcode == 0
        """,
        name="job.py",
    )
    _, report = run_json(sys.executable, "-m", "job", cwd=tmp_path)
    loops = report["loops"]
    assert len(loops) == 3
    assert len({loop["title"] for loop in loops}) == 3  # told apart by their process
    assert len({loop["stats"]["tokens"] for loop in loops}) == 1


def test_loaders_made_anew_are_one_loop_and_let_go(script: Any) -> None:
    train = script(
        """
        import weakref
        gone = []
        for epoch in range(4):
            loader = make()
            for number, batch in enumerate(loader):
                if number == 2:
                    break
            gone.append(weakref.ref(loader))
        del loader, batch
        print([reference() is None for reference in gone])
        print(len([t for t in os.listdir("/proc/self/task")
                   if open(f"/proc/self/task/{t}/comm").read().startswith("brimful")]))
        """
    )
    own, report = run_json(sys.executable, train)
    assert own == ["[True, True, True, False]", "0"]  # no thread of a pass that was left
    (loop,) = report["loops"]
    assert loop["stats"]["batches"] == 12
    assert loop["stats"]["first_batches"] == 4


def test_batches_of_loaders_made_anew_follow_each_other(script: Any, tmp_path: Path) -> None:
    train = script("for epoch in range(3):\n    for batch in make(): pass\n")
    lines = tmp_path / "lines.jsonl"
    assert run(sys.executable, train, options=("--jsonl", str(lines))).returncode == 0
    rows = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    assert [row["number"] for row in rows] == list(range(len(rows)))
    assert sum(row["first"] for row in rows) == 3
    entered = [row["entered"] for row in rows]
    assert entered == sorted(entered)


def test_loops_side_by_side_are_told_apart(script: Any) -> None:
    train = script(
        """
        os.environ.clear()  # nothing of ours is needed from there
        for epoch in range(2):
            for one, other in zip(make(), make()):
                pass
        """
    )
    _, report = run_json(sys.executable, train)
    first, second = report["loops"]
    assert second["title"] == f"{first['title']} (2)"
    assert first["stats"]["tokens"] == second["stats"]["tokens"]
    assert first["stats"]["first_batches"] == 2


def test_a_loop_inside_of_a_package_is_told_by_the_line_that_led_there(
    script: Any, tmp_path: Path
) -> None:
    package = tmp_path / "site-packages" / "trainer"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "class Trainer:\n"
        "    def fit(self, loader):\n"
        "        return [batch.num_tokens for batch in loader]\n",
        encoding="utf-8",
    )
    train = script("import trainer\ntrainer.Trainer().fit(make())\n")
    line = len(train.read_text(encoding="utf-8").splitlines())
    how = {"env": environment(package.parent), "cwd": tmp_path}
    _, report = run_json(sys.executable, "train.py", **how)
    assert report["loops"][0]["title"] == f"train.py:{line} in Trainer.fit"
    _, report = run_json(sys.executable, "-c", "import train", **how)
    assert report["loops"][0]["title"] == f"train.py:{line} in Trainer.fit"


def test_threads_that_iterate_at_once_all_count(script: Any) -> None:
    train = script(
        """
        import threading
        loader, drawn = make(), []
        def work():
            drawn.append(sum(batch.num_tokens for batch in loader))
        threads = [threading.Thread(target=work) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(sum(drawn))
        """
    )
    own, report = run_json(sys.executable, train)
    assert sum(loop["stats"]["tokens"] for loop in report["loops"]) == int(own[0])


@pytest.mark.slow
def test_a_program_whose_python_has_no_brimful_is_watched_from_where_the_command_is(
    script: Any,
) -> None:
    train = script(
        """
        import sys
        sys.modules.pop("brimful.loader", None)
        class Rows:
            def __len__(self):
                return 8
            def __getitem__(self, i):
                return i
        from torch.utils.data import DataLoader
        print([batch.tolist() for batch in DataLoader(Rows(), batch_size=4)])
        """,
        start="",
    )
    start = (
        f"import sys; sys.path[:0] = {[str(Path(bf.__file__).parents[1])]}; "
        f"sys.argv[1:] = ['profile', '--json', '--', sys.executable, {str(train)!r}]; "
        "from brimful.cli import main; main()"
    )
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", start], env=alone, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("[[0, 1, 2, 3], [4, 5, 6, 7]]\n\n{")
    assert done.stderr == ""


def test_the_json_is_a_line_of_its_own_behind_whatever_the_program_wrote(script: Any) -> None:
    train = script(
        """
        for batch in make():
            pass
        print('{"mine": 1}')
        print("no line end", end="")
        """
    )
    done = run(sys.executable, train, options=("--json",))
    *own, report = done.stdout.splitlines()
    assert own == ['{"mine": 1}', "no line end"]
    assert json.loads(report)["loops"]


def test_an_error_of_the_programs_own_comes_through(script: Any) -> None:
    train = script(
        """
        class Loader(bf.DataLoader):
            def __iter__(self):
                yield from super().__iter__()
                raise OSError("the user's")
        try:
            for batch in Loader([np.arange(9)], seq_len=4):
                pass
        except OSError as error:
            print(error)
        """
    )
    own, report = run_json(sys.executable, train)
    assert own == ["the user's"]
    assert report["loops"][0]["stats"]["batches"] == 3


@pytest.mark.parametrize(
    ("code", "expected"),
    [("sys.exit(7)", 7), ("raise ValueError('mine')", 1), ("os.kill(os.getpid(), 9)", 137)],
)
def test_the_exit_code_is_the_programs(script: Any, code: str, expected: int) -> None:
    train = script(f"for batch in make(): break\n{code}\n")
    done = run(sys.executable, train)
    assert done.returncode == expected
    if expected == 1:
        assert "ValueError: mine" in done.stderr
    if expected != 137:
        assert "verdict: " in done.stderr


def test_a_file_that_cannot_be_written_changes_no_exit_code(script: Any) -> None:
    train = script("for batch in make(): pass\nsys.exit(7)\n")
    done = run(sys.executable, train, options=("--jsonl", "/dev/full"))
    assert done.returncode == 7
    assert "brimful: [Errno 28] No space left on device" in done.stderr


def test_a_program_that_is_killed_is_told_by_its_last_sums(script: Any) -> None:
    train = script(
        """
        loader = make()
        began = time.monotonic()
        while time.monotonic() - began < 1.2:
            for batch in loader:
                time.sleep(0.001)
        os.kill(os.getpid(), 9)
        """
    )
    done = run(sys.executable, train)
    assert done.returncode == 137
    assert "ended without a word" in done.stderr
    assert "verdict: " in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_program_which_decides(script: Any, number: signal.Signals) -> None:
    train = script(
        """
        import signal
        def finish(number, frame):
            print("got", number, flush=True)
            sys.exit(5)
        signal.signal(signal.SIGINT, finish)
        signal.signal(signal.SIGTERM, finish)
        for batch in make(): pass
        print("ready", flush=True)
        time.sleep(60)
        """
    )
    # In a session of its own no terminal sends it signals.
    with subprocess.Popen(
        command(sys.executable, train),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(number)
        out, told = running.communicate(timeout=60)
    assert out == f"got {int(number)}\n"
    assert running.returncode == 5
    assert "verdict: " in told


def test_a_users_own_sitecustomize_runs(script: Any, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("mine = 'user'\nprint('user site')\n", encoding="utf-8")
    train = script("import sitecustomize; print(sitecustomize.mine)\nfor batch in make(): pass\n")
    own, report = run_json(sys.executable, train, env=environment(site))
    assert own == ["user site", "user site", "user"]  # of the command itself, and the program
    assert len(report["loops"]) == 1


def test_nothing_is_imported_before_a_loader_is(script: Any) -> None:
    train = script("import sys; print(sorted({'numpy', 'brimful'} & set(sys.modules)))\n", start="")
    done = run(sys.executable, train)
    assert done.stdout == "[]\n"
    assert "no loop over a DataLoader" in done.stderr


def test_a_program_that_is_no_python_runs_too() -> None:
    done = run("sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout) == (3, "out\n")
    assert done.stderr.startswith("err\n")


TORCH = """
import gc, multiprocessing, time
import torch
from torch.utils.data import DataLoader, Dataset
from torchdata.stateful_dataloader import StatefulDataLoader

class Rows(Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, i):
        return {"input_ids": torch.full((8,), i), "noise": torch.rand(1)}

if __name__ == "__main__":
    for make, workers in ((DataLoader, 0), (DataLoader, 2), (StatefulDataLoader, 0)):
        torch.manual_seed(5)
        loader = make(Rows(), batch_size=4, shuffle=True, num_workers=workers)
        for epoch in range(2):
            batches = [b for b in loader]
            print([b["input_ids"][:, 0].tolist() for b in batches])
            print([b["noise"].sum().item() for b in batches])
        print(torch.rand(1).item())
        for batch in loader:
            break
        gc.collect()
        print(len(multiprocessing.active_children()))
"""


@pytest.mark.slow
def test_torch_loaders_keep_order_randomness_and_workers(script: Any) -> None:
    train = script("", start=TORCH)
    alone = subprocess.run(
        [sys.executable, "-W", "ignore", train], capture_output=True, text=True, check=True
    )
    own, report = run_json(sys.executable, "-W", "ignore", train)
    assert own == alone.stdout.splitlines()
    drawn = {loop["title"]: loop["stats"] for loop in report["loops"]}
    assert [stats["batches"] for stats in drawn.values()] == [36, 3]  # both lines, all loaders
    assert [stats["slots"] for stats in drawn.values()] == [36 * 32, 3 * 32]


@pytest.mark.slow
def test_ranks_of_torchrun_are_told_apart(script: Any) -> None:
    train = script(
        """
        import torch.distributed as dist
        dist.init_process_group("gloo")
        for batch in DataLoader(Rows(), batch_size=4):
            time.sleep(0.02 * (1 + 2 * dist.get_rank()))
        dist.destroy_process_group()
        """,
        start=TORCH.partition("if __name__")[0],
    )
    launcher = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", 2)
    done = run(*launcher, train)
    assert "\nranks: of 2 ranks rank " in done.stderr
    _, report = run_json(*launcher, train)
    titles = [loop["title"] for loop in report["loops"]]
    assert [title.partition(", ")[2] for title in titles] == ["rank 0", "rank 1"]
    steps = [loop["stats"]["step_seconds"] for loop in report["loops"]]
    assert steps[1] > steps[0]
