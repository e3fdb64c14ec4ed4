"""Opens the place where a study runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from study.launch.cluster import default_address, join, require_lasting
from study.launch.workplace import Workplace, results_in
from study.request import Request
from study.tracking.uris import tracking_uri


@contextlib.contextmanager
def opened(request: Request) -> Iterator[Workplace]:
    """Opens the place where a study runs; makes nothing there before `Workplace.prepare`.

    Raises:
        RequestError: Ray would delete the directory, or the cluster cannot be joined.
    """
    results = results_in(request.results)
    if request.shard:
        yield Workplace(results, shared=True)
        return
    if results.storage.local:
        require_lasting(results.url)
    elif not tracking_uri(request.tracking):
        require_lasting(os.getcwd())  # MLflow's database lies there
    address = default_address() if request.address is None else request.address
    with contextlib.ExitStack() as stack:
        cluster = None
        if address is not None:
            cluster = stack.enter_context(join(address))
            cluster.require()
        place = Workplace(results, cluster, accepts_censored=bool(request.scheduler))
        yield stack.enter_context(contextlib.closing(place))
