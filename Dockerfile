# Three images of one server:
#   docker build --target cpu   --tag gradserve:cpu   .    (the default target)
#   docker build --target cuda  --tag gradserve:cuda  .
#   docker build --target cudnn --tag gradserve:cudnn .    (cuda and cuDNN)
# docs/deploy.md says how to run them. Needs BuildKit, Docker's builder since version 23.

# `make pin` writes the digest of the image behind it.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS python
# Debian mends the packages of a release in place: a version pinned here would be gone with the next repair.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 \
 && rm -rf /var/lib/apt/lists/*

FROM python AS builder
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3-pip python3-venv \
 && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv --without-pip /opt/gradserve
WORKDIR /src

# What gradserve needs, before gradserve itself: a change of the code leaves these layers as they are.
# Every version, and every file by its hash, is written down in deploy/lock, which `make lock` makes.
# A secret called pip, where one is given, is the configuration of another package index; no layer keeps it.
FROM builder AS cpu-dependencies
COPY deploy/lock/cpu.txt ./
RUN --mount=type=cache,target=/var/cache/pip \
    --mount=type=secret,id=pip,target=/etc/pip.conf \
    python3 -m pip --python /opt/gradserve --cache-dir /var/cache/pip install --require-hashes --requirement cpu.txt

FROM cpu-dependencies AS cuda-dependencies
ARG CUDA=12
COPY deploy/lock/cuda12.txt deploy/lock/cuda13.txt ./
RUN --mount=type=cache,target=/var/cache/pip \
    --mount=type=secret,id=pip,target=/etc/pip.conf \
    python3 -m pip --python /opt/gradserve --cache-dir /var/cache/pip install --require-hashes --requirement "cuda${CUDA}.txt"

FROM cuda-dependencies AS cudnn-dependencies
ARG CUDA=12
COPY deploy/lock/cudnn12.txt deploy/lock/cudnn13.txt ./
RUN --mount=type=cache,target=/var/cache/pip \
    --mount=type=secret,id=pip,target=/etc/pip.conf \
    python3 -m pip --python /opt/gradserve --cache-dir /var/cache/pip install --require-hashes --requirement "cudnn${CUDA}.txt"

# The code alone, in an environment of the same path: laid over the dependencies it is one small layer.
# What builds it is pinned too, and stays in this stage.
FROM builder AS code
COPY deploy/lock/build.txt ./
RUN --mount=type=cache,target=/var/cache/pip \
    --mount=type=secret,id=pip,target=/etc/pip.conf \
    python3 -m venv --without-pip /opt/build \
 && python3 -m pip --python /opt/build --cache-dir /var/cache/pip install --require-hashes --requirement build.txt
COPY . .
RUN python3 -m pip --python /opt/build wheel --no-index --no-deps --no-build-isolation --wheel-dir /opt/wheels . \
 && python3 -m pip --python /opt/gradserve install --no-index --no-deps /opt/wheels/*.whl

FROM python AS runtime
RUN groupadd --gid 10001 gradserve \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin gradserve \
 && install --directory --owner=10001 --group=10001 --mode=0700 /var/cache/gradserve /var/lib/gradserve
COPY --chmod=0644 deploy/health.py /usr/local/lib/gradserve/health.py
ENV PATH=/opt/gradserve/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    GRADSERVE_CACHE_DIR=/var/cache/gradserve \
    GRADSERVE_STATE=/var/lib/gradserve
LABEL org.opencontainers.image.title="gradserve" \
      org.opencontainers.image.description="Send a computation graph, get gradients back: automatic differentiation over HTTP." \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="MIT"
VOLUME /var/cache/gradserve /var/lib/gradserve
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "/usr/local/lib/gradserve/health.py"]
# Every address of the container: it ends at once unless it is given keys, GRADSERVE_API_KEY or GRADSERVE_KEYS_FILE.
ENTRYPOINT ["gradserve", "serve", "--host", "0.0.0.0"]

FROM runtime AS cuda-runtime
RUN install --directory --owner=10001 --group=10001 /var/cache/cupy
# cuda, not auto: a container that was given no GPU says so instead of computing on the CPU.
ENV CUPY_CACHE_DIR=/var/cache/cupy \
    GRADSERVE_DEVICE=cuda \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    NVIDIA_VISIBLE_DEVICES=all
VOLUME /var/cache/cupy

FROM cuda-runtime AS cuda
COPY --from=cuda-dependencies /opt/gradserve /opt/gradserve
COPY --from=code /opt/gradserve /opt/gradserve
USER 10001:10001

# cuDNN is NVIDIA's, under a licence of its own: docs/deploy.md says what it allows.
FROM cuda-runtime AS cudnn
COPY --from=cudnn-dependencies /opt/gradserve /opt/gradserve
COPY --from=code /opt/gradserve /opt/gradserve
USER 10001:10001

FROM runtime AS cpu
COPY --from=cpu-dependencies /opt/gradserve /opt/gradserve
COPY --from=code /opt/gradserve /opt/gradserve
ENV GRADSERVE_DEVICE=cpu
USER 10001:10001
