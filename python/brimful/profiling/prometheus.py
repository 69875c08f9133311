"""Figures of loaders for Prometheus, by prometheus-client, which the extra `prometheus` brings."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from brimful._core import PlanError
from brimful.extras import require
from brimful.profiling.facts import facts_of
from brimful.profiling.metrics import COUNTERS, GAUGES, STARVATION, Metric

_DEFAULT = "loader"


class Exporter:
    """Hands out what loaders count and wait for, whenever Prometheus asks.

    `exporter = Exporter(loader)` and then `prometheus_client.start_http_server(8000)`, in each
    process; several loaders are `Exporter({"train": ..., "eval": ...})`. A name is the label
    `loader` of each metric. Metrics are named `brimful_...` after the attributes of `Stats` and of
    `ProfileStats`, and explained there; what a loader does not know is left out. Beside these
    there are `brimful_starvation_seconds_total` by `cause`, `brimful_exposure_tokens_total` and
    `brimful_exposure_documents_total` by `source`, which speak of all ranks,
    `brimful_logged`, the newest of each number given to `loader.log()`, and `brimful_loader_info`.

    Figures are read in the thread that serves them; the loop is not held up. An exporter keeps no
    loader alive, and has nothing to say of one that is gone.

    Args:
        loaders: a loader of either path, or the profiler of any loader (`bf.profile`); or several,
            by name.
        registry: a CollectorRegistry; by default prometheus-client's own.

    Raises:
        PlanError: the registry has an exporter already; a ValueError.
        ModuleNotFoundError: prometheus-client is not installed; it says how to get it.
    """

    def __init__(self, loaders: Any, *, registry: Any = None) -> None:
        self._client = require("prometheus_client", "prometheus", "brimful.profiling.prometheus")
        self._core = require("prometheus_client.core", "prometheus", "brimful.profiling.prometheus")
        named = loaders if isinstance(loaders, Mapping) else {_DEFAULT: loaders}
        self._loaders = {str(name): weakref.ref(loader) for name, loader in named.items()}
        self._registry = self._client.REGISTRY if registry is None else registry
        self._told: dict[tuple[str, ...], float] = {}
        self._telling = threading.Lock()
        try:
            self._registry.register(self)
        except ValueError as error:
            raise PlanError(
                "this registry has metrics of a brimful exporter already: close() that one, or "
                'give one exporter all loaders, by name: Exporter({"train": ..., "eval": ...})'
            ) from error

    def __enter__(self) -> Exporter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """Takes the metrics from the registry. A second call does nothing."""
        registry, self._registry = self._registry, None
        if registry is not None:
            registry.unregister(self)

    def describe(self) -> Iterator[Any]:
        """The names of all metrics, for the registry: no loader is asked for that."""
        return iter(self._families().values())

    def collect(self) -> Iterator[Any]:
        """What Prometheus is given: metric families of prometheus-client."""
        families = self._families()
        with self._telling:
            for name, reference in self._loaders.items():
                loader = reference()
                if loader is not None:
                    self._add(families, name, loader)
        return iter([family for family in families.values() if family.samples])

    def _families(self) -> dict[str, Any]:
        counter, gauge = self._core.CounterMetricFamily, self._core.GaugeMetricFamily
        info = self._core.InfoMetricFamily
        families = {m.name: counter(m.name, m.help, labels=["loader"]) for m in COUNTERS}
        families |= {m.name: gauge(m.name, m.help, labels=["loader"]) for m in GAUGES}
        labelled = (
            (counter, "brimful_starvation_seconds", "Device time without a batch.", "cause"),
            (counter, "brimful_exposure_tokens", "Delivered, all ranks since step 0.", "source"),
            (counter, "brimful_exposure_documents", "Begun, all ranks since step 0.", "source"),
            (gauge, "brimful_logged", "The newest number given to loader.log().", "name"),
        )
        families |= {
            name: kind(name, text, labels=["loader", label]) for kind, name, text, label in labelled
        }
        families["brimful_loader"] = info("brimful_loader", "How it is set up.", labels=["loader"])
        return families

    def _add(self, families: dict[str, Any], name: str, loader: Any) -> None:
        stats = loader.stats()
        for metric in COUNTERS:
            self._count(families, metric, stats, name)
        for metric in GAUGES:
            value = getattr(stats, metric.field, None)
            if value is not None:
                families[metric.name].add_metric([name], value)
        starvation = getattr(stats, "starvation", None)
        if starvation is not None:
            for metric in STARVATION:
                self._count(families, metric, starvation, name, metric.help)
            families["brimful_pinned_bytes"].add_metric([name], starvation.pinned_bytes)
            if starvation.headroom_seconds is not None:
                headroom = families["brimful_headroom_seconds"]
                headroom.add_metric([name], starvation.headroom_seconds)
        for source, counts in getattr(stats, "exposure", {}).items():
            families["brimful_exposure_tokens"].add_metric([name, source], counts["tokens"])
            families["brimful_exposure_documents"].add_metric([name, source], counts["documents"])
        if hasattr(loader, "log"):
            for key, value in loader._notes.newest().items():
                families["brimful_logged"].add_metric([name, key], value)
        families["brimful_loader"].add_metric([name], _info(loader))

    def _count(
        self, families: dict[str, Any], metric: Metric, stats: Any, name: str, *labels: str
    ) -> None:
        """Adds a counter that never falls: a pass that ends between two readings of ours is counted
        nowhere for a moment, and Prometheus would take that for a restart.
        """
        value = getattr(stats, metric.field, None)
        if value is None:
            return
        key = (metric.name, name, *labels)
        self._told[key] = max(float(value), self._told.get(key, 0.0))
        families[metric.name].add_metric([name, *labels], self._told[key])


def _info(loader: Any) -> dict[str, str]:
    facts = getattr(loader, "facts", None) or facts_of(loader)
    config = getattr(loader, "config", None)
    settings = dict(facts.settings)
    for name in ("rank", "world_size"):
        if hasattr(config, name):
            settings[name] = getattr(config, name)
    settings |= {"kind": facts.kind, "name": facts.name, "workers": facts.workers}
    return {key: str(value) for key, value in settings.items()}
