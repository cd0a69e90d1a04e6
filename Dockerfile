# The images of the project: build with --target operator, runner, analysis, engines or transformers.
# They run as a user that is not root, with a read-only root filesystem.
ARG BASE=docker.io/library/python:3.11-slim-bookworm
# What the Transformers baseline is built on: the very image that it is compared with.
ARG VLLM=docker.io/vllm/vllm-openai:v0.32.0

# The project itself, laid out under /project as it will lie under /; pip and the build back end stay here.
FROM ${BASE} AS tools
# For a private certificate authority: mount its bundle into the build and name it here.
ARG PIP_CERT
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CACHE_DIR=/var/cache/pip PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
COPY constraints/build.txt /constraints/
RUN --mount=type=cache,target=/var/cache/pip \
    python3 -m venv --without-pip /opt/goodput \
 && python3 -m venv /opt/tools \
 && /opt/tools/bin/pip install --quiet --require-hashes --requirement /constraints/build.txt

FROM tools AS project
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY analysis analysis
COPY runner runner
COPY operator operator
COPY engines engines
RUN /opt/tools/bin/pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir /wheels . \
 && /opt/tools/bin/pip --python /opt/goodput/bin/python install --quiet --no-warn-script-location --no-deps --no-index --root /project /wheels/*.whl

# What all images share. "install-pinned" makes their environment from /opt/goodput/constraints.txt, without pip and
# what else no image needs: tests, sources and headers for compilers, parts of libraries that nothing here imports.
FROM ${BASE} AS image
ENV PATH=/opt/goodput/bin:/usr/local/bin:/usr/bin:/bin HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /tmp
RUN printf '%s\n' '#!/bin/sh -e' \
      'python3 -m venv --without-pip /opt/goodput && python3 -m venv /opt/pip' \
      'export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CACHE_DIR=/var/cache/pip PIP_ROOT_USER_ACTION=ignore' \
      'pip="/opt/pip/bin/pip --python /opt/goodput/bin/python"' \
      '$pip install --quiet --compile --require-hashes --requirement /opt/goodput/constraints.txt' \
      'rm -r /opt/pip && cd /opt/goodput/lib/python3*/site-packages' \
      'find . -depth -type d -name tests -exec rm -r {} +' \
      'find . -type f -name "*.p[yx][xdi]" -delete' \
      'rm -rf kubernetes/aio numpy/*/include pyarrow/include pyarrow/*flight* pyarrow/_substrait*' \
      'rm -f pyarrow/libarrow_python.so pyarrow/*.so.*.*.*' > /usr/local/bin/install-pinned \
 && chmod 755 /usr/local/bin/install-pinned

# In each image a change of the sources renews only what the last two lines copy.
FROM image AS operator
ARG PIP_CERT
COPY constraints/operator.txt /opt/goodput/constraints.txt
RUN --mount=type=cache,target=/var/cache/pip install-pinned
USER 65532:65532
ENTRYPOINT ["goodput-operator"]
COPY --from=project /project/opt/goodput/bin/goodput-operator /opt/goodput/bin/
COPY --from=project /project/opt/goodput/lib /opt/goodput/lib

FROM image AS runner
ARG PIP_CERT
COPY constraints/runner.txt /opt/goodput/constraints.txt
RUN --mount=type=cache,target=/var/cache/pip install-pinned
USER 65532:65532
ENTRYPOINT ["goodput-runner"]
COPY --from=project /project/opt/goodput/bin/goodput-runner /opt/goodput/bin/
COPY --from=project /project/opt/goodput/lib /opt/goodput/lib

FROM image AS analysis
ARG PIP_CERT
COPY constraints/analysis.txt /opt/goodput/constraints.txt
RUN --mount=type=cache,target=/var/cache/pip install-pinned
USER 65532:65532
ENTRYPOINT ["goodput-analysis"]
COPY --from=project /project/opt/goodput/bin/goodput-analysis /opt/goodput/bin/
COPY --from=project /project/opt/goodput/lib /opt/goodput/lib

FROM image AS engines
ARG PIP_CERT
COPY constraints/engines.txt /opt/goodput/constraints.txt
RUN --mount=type=cache,target=/var/cache/pip install-pinned
USER 65532:65532
ENTRYPOINT ["goodput-engine-simulated"]
COPY --from=project /project/opt/goodput/bin/goodput-engine-simulated /opt/goodput/bin/
COPY --from=project /project/opt/goodput/lib /opt/goodput/lib

# The baseline runs on the torch and the transformers of vLLM's own image, so the two engines differ in nothing else.
# It must be the last stage: builders that build all stages before the wanted one do not need that image for the others.
FROM ${VLLM} AS transformers
USER root
COPY --from=project /wheels /wheels
RUN PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --quiet --no-cache-dir --no-deps --no-index /wheels/*.whl \
 && rm -r /wheels
USER 65532:65532
ENTRYPOINT ["goodput-engine-transformers"]
