"""Composition of a server that shares its state with others."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from fastapi import FastAPI
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from service.cluster.http_peers import HttpPeers
from service.cluster.owner_routing import OwnerRouting
from service.cluster.owners import OwnedShards, OwnerDirectory, Owners
from service.cluster.peer_routes import PeerApplication, PeerQuestions
from service.cluster.pool import ClusterPool
from service.cluster.shared_store import SharedStore
from service.cluster.watch import Watch
from service.core.settings import NO_STATE, Settings, flag, variable
from service.facades.protocols import facades_of
from service.observe.store import StoreService
from service.store.commits import CommitCallback
from service.store.object_journal import ObjectJournal, Tidiness
from service.store.objects import ShardObjects, folder_of
from service.store.ownership import patience_of
from service.store.places import open_objects, place_name, prepare_shared
from service.store.residency import Residency
from service.store.shared_threads import SharedThreads
from service.store.tables import KeyLimit
from service.web.graph_routes import GRAPHS
from service.web.model_routes import MODELS
from service.web.tensor_routes import TENSORS
from service.workers.residents import ReaderCounts

#: bytes of a question beside its tensors
_QUESTION_OVERHEAD: Final = 4 << 20
#: threads for openings, which block while they read a shard and wait for a lease, and for reads of last commits; each
#: reads so many shards at a time
_OPENINGS: Final = 32
_LOOK_UPS: Final = 16
#: threads that read tensors for which there is no room in memory
_READS: Final = 16
#: threads of all shards together for each of commits, looks and tidying; each blocks while the store answers
_SHARD_THREADS: Final = 32
#: compaction of a shard: a new owner reads all of its objects first, while callers wait
_TIDINESS: Final = Tidiness(small_objects=128)


class Cluster:
    """Parts of a server in a cluster: its pool, its store, and the middleware in front of its routes."""

    def __init__(self, settings: Settings) -> None:
        """Raises RuntimeError with one sentence for settings, or a place, that servers cannot share."""
        address, self._secret = address_and_secret(settings)
        self._settings = settings
        self._reader_counts = ReaderCounts()
        self.pool = ClusterPool(settings, self._reader_counts)
        self._peers = HttpPeers(self._secret, address)
        self._objects = open_objects(settings.state)
        self._address = address
        self._shard_threads = SharedThreads(_SHARD_THREADS)

    def open_store(self, on_commit: CommitCallback, key_limits: KeyLimit | None) -> SharedStore:
        """Open the store; `on_commit` is called after commits, and `key_limits` are the limits of keys."""
        settings, threads = self._settings, self._shard_threads
        # Pools of their own: an opening may block for long, and reads of last commits must not wait for it.
        openings = ThreadPoolExecutor(_OPENINGS, "gradserve-opening")
        look_ups = ThreadPoolExecutor(_LOOK_UPS, "gradserve-owner")

        residency = Residency(settings.max_tensor_bytes, ThreadPoolExecutor(_READS, "gradserve-read"))

        def make(shard: int) -> StoreService:
            return StoreService(settings, self.pool, self._journal(shard), on_commit, key_limits, threads, residency)

        owned_shards, directory = OwnedShards(make, openings, residency), OwnerDirectory(self._objects)
        self._owners = Owners(self._address, owned_shards, directory, look_ups, shards=settings.shards)
        place = place_name(settings.state)
        prepare = partial(prepare_shared, self._objects, place, settings.shards)
        patience = patience_of(settings.lease_ms / 1000)
        self._watch = watch = Watch(self._owners, self._peers, self._objects, prepare, place, patience)
        self.store = SharedStore(settings, self.pool, self._owners, self._peers, self._reader_counts, watch)
        self.pool.find, self.pool.find_graph = self.store.versions, self.store.find_graph
        self.pool.promised, self.pool.recall = self.store.promised, self.store.recall
        return self.store

    def in_front_of(self, routes: FastAPI) -> ASGIApp:
        """Wrap the routes so that the owner answers each request."""
        return OwnerRouting(routes, self._owners, self._peers, self.store, paths_of_state(self._settings))

    def between(self, app: ASGIApp, guarded: ASGIApp, routes: Sequence[BaseRoute]) -> ASGIApp:
        """Add the paths between servers to the application. Forwarded requests go to `guarded` alone."""
        max_bytes = self._settings.max_tensor_bytes + _QUESTION_OVERHEAD
        questions = PeerQuestions(self._owners)
        return PeerApplication(app, guarded, routes, questions, self._secret, max_bytes, self._watch)

    def _journal(self, shard: int) -> ObjectJournal:
        place = f"{place_name(self._settings.state)} ({folder_of(shard)})"
        lease = self._settings.lease_ms / 1000
        objects = ShardObjects(self._objects, shard)
        return ObjectJournal(
            objects, place, _TIDINESS, lease=lease, environment=self._shard_threads, owner=self._address
        )


def paths_of_state(settings: Settings) -> frozenset[str]:
    """Return the paths of routes about stored state, except our own computing calls."""
    collections = [(GRAPHS, "graph_id"), (TENSORS, "name"), (MODELS, "name")]
    own_paths = [path for root, parameter in collections for path in (root, f"{root}/{{{parameter}}}")]
    facades = facades_of(settings.facades)
    facade_paths = [route.path for facade in facades for route in facade.routes]
    listings = [listing.path for facade in facades for listing in facade.listings]
    return frozenset([*own_paths, *facade_paths, *listings])


def address_and_secret(settings: Settings) -> tuple[str, str]:
    """Return the address of this server, and the secret of the cluster.

    Raises RuntimeError with one sentence for a state that servers cannot share, and if one of the two is not set.
    """
    option = f"{flag('cluster')} on"
    if "://" not in settings.state:
        kind = "state in memory" if settings.state == NO_STATE else f"the folder {settings.state}"
        raise RuntimeError(
            f"servers cannot share {kind}; with {option}, set {flag('state')} to an s3://, gs:// or az:// URL"
        )
    if settings.cluster_address is None:
        raise RuntimeError(
            f"{option} needs {flag('cluster_address')} http://HOST:PORT, where other servers reach this one"
        )
    if settings.cluster_secret is None:
        raise RuntimeError(
            f"{option} needs the variable {variable('cluster_secret')}, with the same value on all servers"
        )
    return settings.cluster_address, settings.cluster_secret.get_secret_value()
