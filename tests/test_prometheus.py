"""What Prometheus is told: names, labels and values, of every kind of loader, while it runs."""

import gc
import itertools
import math
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import prometheus_client
import pytest
from prometheus_client.core import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

import brimful as bf
from brimful.profiling.metrics import COUNTERS, GAUGES
from brimful.profiling.prometheus import Exporter
from brimful.starvation import Starvation
from truth import corpus_of, mixed


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def scraped(registry: CollectorRegistry) -> dict[tuple[str, ...], float]:
    """Values by name and labels, from the text that a server would give."""
    text = prometheus_client.generate_latest(registry).decode()
    return {
        (sample.name, *(f"{k}={v}" for k, v in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def loader_of(**how: Any) -> bf.DataLoader:
    corpus = mixed({"web": [5, 9, 3] * 20, "code": [7, 4] * 20})
    return bf.DataLoader(corpus, **{"seq_len": 16, "batch_size": 2, "shuffle": True} | how)


def test_every_figure_is_that_of_stats(registry: CollectorRegistry):
    loader = loader_of()
    Exporter(loader, registry=registry)
    for batch in itertools.islice(loader, 7):
        loader.log(loss=batch.step / 2, lr=0.1)
    loader.close()
    found, stats = scraped(registry), loader.stats()
    for metrics, suffix in ((COUNTERS, "_total"), (GAUGES, "")):
        for metric in metrics:
            value = getattr(stats, metric.field, None)
            sample = found.get((metric.name + suffix, "loader=loader"))
            if metric.field in ("anonymous_bytes", "file_backed_bytes"):
                assert sample > 0
            else:
                assert sample == value, metric
    assert found["brimful_tokens_total", "loader=loader"] == stats.tokens > 0
    for source, counts in stats.exposure.items():
        labels = ("loader=loader", f"source={source}")
        assert found["brimful_exposure_tokens_total", *labels] == counts["tokens"]
        assert found["brimful_exposure_documents_total", *labels] == counts["documents"]
    assert found["brimful_logged", "loader=loader", "name=loss"] == 3.0
    assert found["brimful_logged", "loader=loader", "name=lr"] == 0.1
    (info,) = (key for key in found if key[0] == "brimful_loader_info")
    assert {"kind=brimful", "packing=streaming", "rank=0", "world_size=1"} <= set(info)
    assert all(key[0].startswith("brimful_") for key in found)


def test_metrics_name_attributes_that_there_are():
    from brimful.profiling.figures import ProfileStats

    known = {*bf.Stats.__dataclass_fields__, *ProfileStats.__dataclass_fields__}
    known |= {*Starvation.__dataclass_fields__}
    fields = [metric.field for metric in (*COUNTERS, *GAUGES)]
    assert set(fields) <= known
    assert len(set(fields)) == len(fields)


def test_several_loaders_have_names(registry: CollectorRegistry):
    train, evaluation = loader_of(), bf.DataLoader(list(range(12)), batch_size=3)
    Exporter({"train": train, "eval": evaluation}, registry=registry)
    list(train)
    for _ in evaluation:
        evaluation.log(loss=2.0)
    found = scraped(registry)
    assert found["brimful_batches_total", "loader=train"] == train.stats().batches
    assert found["brimful_batches_total", "loader=eval"] == 4
    assert found["brimful_logged", "loader=eval", "name=loss"] == 2.0
    assert ("brimful_tokens_total", "loader=eval") not in found, "torch's path knows no tokens"


def test_any_loader_under_a_profile(registry: CollectorRegistry):
    def batches() -> Iterator[dict[str, Any]]:
        import torch

        for _ in range(5):
            yield {"input_ids": torch.ones(2, 8, dtype=torch.long)}

    with bf.profile(batches()) as p:
        Exporter(p, registry=registry)
        for _ in p:
            pass
    found = scraped(registry)
    assert found["brimful_batches_total", "loader=loader"] == 5
    assert found["brimful_slots_total", "loader=loader"] == 80
    assert found["brimful_step_seconds_total", "loader=loader"] > 0


def test_starvation_by_cause(registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch):
    parts = {"load": 1.0, "ring": 2.0, "copy": 3.0, "handoff": 4.0}
    starvation = Starvation(
        batches=5,
        elapsed_seconds=20.0,
        seconds=10.0,
        **{f"{name}_seconds": seconds for name, seconds in parts.items()},
        fraction=0.5,
        headroom_seconds=0.25,
        pinned_bytes=4096,
    )
    loader = loader_of()
    stats = loader.stats()
    object.__setattr__(stats, "starvation", starvation)
    monkeypatch.setattr(loader, "stats", lambda: stats)
    Exporter(loader, registry=registry)
    found = scraped(registry)
    for cause, seconds in parts.items():
        labels = (f"cause={cause}", "loader=loader")
        assert found["brimful_starvation_seconds_total", *labels] == seconds
    assert found["brimful_headroom_seconds", "loader=loader"] == 0.25
    assert found["brimful_pinned_bytes", "loader=loader"] == 4096


def test_a_second_exporter_is_refused_until_the_first_is_closed(registry: CollectorRegistry):
    loader = loader_of()
    with Exporter(loader, registry=registry) as first:
        with pytest.raises(bf.PlanError, match="already"):
            Exporter(loader, registry=registry)
        first.close()
        assert scraped(registry) == {}
        Exporter(loader, registry=registry)
    assert ("brimful_batches_total", "loader=loader") in scraped(registry)


@pytest.mark.slow
def test_an_exporter_keeps_no_loader(registry: CollectorRegistry):
    loader = loader_of()
    Exporter(loader, registry=registry)
    assert scraped(registry)
    del loader
    gc.collect()
    assert scraped(registry) == {}


def test_counters_never_fall_while_passes_begin_and_end(registry: CollectorRegistry):
    loader = loader_of(num_workers=1)
    Exporter(loader, registry=registry)
    stop, readings = threading.Event(), []

    def scrape() -> None:
        while not stop.is_set():
            readings.append(scraped(registry))

    thread = threading.Thread(target=scrape)
    thread.start()
    while len(readings) < 12:
        for _ in loader:
            pass
    stop.set()
    thread.join()
    for before, after in itertools.pairwise(readings):
        for key, value in before.items():
            if key[0].endswith("_total") and "exposure" not in key[0]:
                assert after[key] >= value, key


def test_a_server_serves_it(registry: CollectorRegistry):
    loader = loader_of()
    Exporter(loader, registry=registry)
    server, thread = prometheus_client.start_http_server(0, addr="127.0.0.1", registry=registry)
    try:
        list(loader)
        loader.log(loss=math.nan)
        url = f"http://127.0.0.1:{server.server_port}/metrics"
        with urllib.request.urlopen(url) as response:
            text = response.read().decode()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert f'brimful_tokens_total{{loader="loader"}} {float(loader.stats().tokens)}' in text
    assert 'brimful_logged{loader="loader",name="loss"} NaN' in text


def test_without_prometheus_client_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        "from brimful.profiling.prometheus import Exporter\n"
        "import brimful as bf\n"
        "try: Exporter(bf.DataLoader([[1, 2]], seq_len=2))\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'brimful[prometheus]'" in run.stdout


def test_nothing_is_read_of_a_corpus_for_it(registry: CollectorRegistry):
    loader = bf.DataLoader(corpus_of([4] * 10), seq_len=8)
    Exporter(loader, registry=registry)
    assert scraped(registry)["brimful_batches_total", "loader=loader"] == 0
    assert ("brimful_queue_depth", "loader=loader") not in scraped(registry)
