# The study with all that its commands need. docs/running.md says how to build and use it.

# Python and uv as in cluster.yaml: Ray refuses a node with another Python.
FROM python:3.11.18-slim

# KubeRay asks a node for its health with wget.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends wget && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir uv==0.13.8

# Into Python itself: login shells, as KubeRay's are, find `ray` in /usr/local/bin alone. Compiled
# here, since the user below cannot write beside the modules.
ENV UV_SYSTEM_PYTHON=1 UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy

# Packages before sources, which change more often. PyPI's torch brings CUDA. A backend takes torch
# and torchvision from one index: cpu, or the CUDA of an older driver.
WORKDIR /src
COPY pyproject.toml ./
ARG TORCH_BACKEND
RUN --mount=type=cache,target=/root/.cache/uv \
    uv pip install ${TORCH_BACKEND:+--torch-backend=$TORCH_BACKEND} --all-extras -r pyproject.toml

COPY . .
RUN --mount=type=cache,target=/root/.cache/uv uv pip install --no-deps .

# study/launch/cluster.py says what they are for; nodes that `ray start` starts need them, too.
ENV RAY_USAGE_STATS_ENABLED=0 \
    RAY_ENABLE_UV_RUN_RUNTIME_ENV=0 \
    RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO=0 \
    MALLOC_ARENA_MAX=1 \
    CUDA_DEVICE_MAX_CONNECTIONS=32

# All that a command writes, results and caches, is in /work, whoever the user is (`--user`).
RUN useradd --uid 1000 --create-home --home-dir /work study
USER 1000
ENV HOME=/work USER=study
WORKDIR /work
VOLUME /work
ENTRYPOINT ["attention-study"]
CMD ["--help"]
