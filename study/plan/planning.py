"""Turns a request into a plan: lays out its points, then divides the machine among its cells."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import multiprocessing
import operator
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from study import parts, tasks
from study.cell import Options
from study.errors import RequestError
from study.hardware import TF32_NEEDS_GPU, has_gpu
from study.kinds import KINDS
from study.launch.nodes import Cluster
from study.plan.divide import with_packing
from study.plan.estimate import cell_seconds, choose_kernels, choose_packing, lacks_bfloat16
from study.plan.grid import make_plan, plan_of
from study.plan.plan import Division, Plan
from study.request import Request
from study.tasks.task import Facts
from study.terminal.working import working
from study.train.run_training import opened_task
from study.train.steps.packs import Packing

_SHARED_GPU = (
    "trials that share a GPU take turns on it, unless CUDA's Multi-Process Service runs "
    "(docs/running.md)"
)


def planned(request: Request) -> Plan:
    """Plans the grid of a study.

    Raises:
        RequestError: a grid with no cell or too many, or data that cannot be had, which a plan
            alone does not download.
    """
    facts_of = functools.partial(_facts, request)
    return _as_asked(request, make_plan(request.space, request.preset, request.axes, facts_of))


def laid_out(request: Request, points: Iterable[Mapping[str, Any]]) -> Plan:
    """Plans the cells of single points, axis -> value; raises as `planned`."""
    facts_of = functools.partial(_facts, request)
    return _as_asked(request, plan_of(request.space, request.preset, points, facts_of))


def _facts(request: Request, task: str, options: Options) -> Facts:
    if request.verb == "plan" and not tasks.at_hand(task, request.places, options):
        weights = " and --weights FILE" if "encoder" in options else ""
        raise RequestError(
            f"a plan needs the data of {task}, which is not on this machine: name its folder with "
            f"--data-dir DIR{weights}, or run without --plan, which fetches what can be fetched."
        )
    return opened_task(task, request.places, options).facts


def _as_asked(request: Request, plan: Plan) -> Plan:
    how = Division(micro_batch=request.micro_batch)
    return dataclasses.replace(plan, how=how, watched=bool(request.search or request.scheduler))


def divided(request: Request, plan: Plan, cluster: Cluster | None) -> Plan:
    """The plan with packs or shared prefixes, its resources and its estimated time.

    Args:
        request: what was asked for.
        plan: of the whole study.
        cluster: to train on; None: this machine.

    Raises:
        RequestError: the machine lacks the GPUs or cores that a trial asks for.
    """
    room = None
    gpus = request.gpus_per_trial if KINDS[plan.kind].trains else 0
    how = dataclasses.replace(plan.how, gpus_per_trial=gpus)
    if cluster is not None:
        gpus = cluster.default_gpus() if gpus is None else gpus
        where = f"the cluster at {cluster.address}"
        how = dataclasses.replace(how, gpus_per_trial=gpus, where=where)
        room = functools.partial(cluster.slots, gpus=gpus)
    divide = functools.partial(
        with_packing, room=room, threads=request.threads, max_concurrent=request.max_concurrent
    )
    plan = divide(dataclasses.replace(plan, how=how), how.packing)
    with working("timing cells"), where_it_trains(plan, cluster) as call:
        kernels, reason = call(choose_kernels, plan, request.places, request.kernels)
        how = dataclasses.replace(plan.how, kernels=kernels, kernels_reason=reason)
        plan = dataclasses.replace(plan, how=how)
        if request.search or request.scheduler:
            reason = (
                "a search knows its cells one by one" if request.search else "ASHA may stop them"
            )
            plan = divide(plan, Packing(reason=reason), no_share_reason=reason)
        else:
            packing = call(choose_packing, plan, request.places, request.pack, request.share)
            plan = divide(plan, packing, share=request.share and KINDS[plan.kind].trains)
        seconds = call(cell_seconds, plan, request.places)
        precisions = {cell.precision for cell in plan.rows.loc[seconds.index, "cell"]}
        notes = [_SHARED_GPU] if 0 < (plan.how.gpus_per_trial or 0) < 1 else []
        if "tf32" in precisions and not _uses_gpu(plan, cluster):
            if request.verb != "plan":
                raise RequestError(TF32_NEEDS_GPU)
            notes.append(f"{TF32_NEEDS_GPU} Timed in float32.")
        if "bfloat16" in precisions and call(lacks_bfloat16, plan):
            where = plan.how.where
            notes.append(f"{where} lacks bfloat16 instructions; float32 is faster there")
    how = dataclasses.replace(plan.how, notes=tuple(notes))
    return dataclasses.replace(plan.timed(seconds), how=how)


@contextlib.contextmanager
def where_it_trains(plan: Plan, cluster: Cluster | None) -> Iterator[Callable[..., Any]]:
    """Gives what calls functions that time cells, on their arguments, where the cells train.

    That is on the cluster, if there is one. On this machine's GPU it is in a process of its own,
    since one that has used a GPU keeps a part of its memory, and on a GPU in exclusive mode no
    trial could start beside it.

    Raises:
        RequestError: that process died.
    """
    if plan.left.empty and plan.to_come.empty:
        yield operator.call
    elif cluster is not None:
        how = plan.how
        yield functools.partial(
            cluster.call,
            parts.with_parts,
            parts.loaded(),
            threads=how.threads,
            gpus=how.gpus_per_trial or 0,
        )
    elif not _uses_gpu(plan, None):
        yield operator.call
    else:
        context = multiprocessing.get_context("spawn")
        ignore = signal.SIGINT, signal.SIG_IGN  # Ctrl-C is the command's
        with ProcessPoolExecutor(1, context, signal.signal, ignore) as process:
            try:
                yield lambda *call: process.submit(
                    parts.with_parts, parts.loaded(), *call
                ).result()
            except BrokenProcessPool as error:
                raise RequestError(
                    "the process that times cells on the GPU died; what it printed is above. Is "
                    "the GPU free (nvidia-smi)? --gpus-per-trial 0 trains on the CPU."
                ) from error


def _uses_gpu(plan: Plan, cluster: Cluster | None) -> bool:
    """Whether cells train on a GPU."""
    there = cluster is not None or has_gpu()
    return there and plan.how.gpus_per_trial != 0
