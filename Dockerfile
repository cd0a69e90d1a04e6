# The images of the project: build with --target operator, runner, analysis or engines.
# They run as a user that is not root, with a read-only root filesystem.
ARG BASE=docker.io/library/python:3.11-slim-bookworm

# pip and the build back end, pinned; no part of any image.
FROM ${BASE} AS tools
# For a private certificate authority: mount its bundle into the build and name it here.
ARG PIP_CERT
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CACHE_DIR=/var/cache/pip PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
COPY constraints/build.txt /constraints/
RUN --mount=type=cache,target=/var/cache/pip \
    python3 -m venv /opt/tools \
 && /opt/tools/bin/pip install --quiet --require-hashes --requirement /constraints/build.txt \
 && python3 -m venv --without-pip /opt/goodput
# What no image needs: tests, sources and headers for compilers, parts of libraries that nothing here imports.
RUN printf '%s\n' '#!/bin/sh -e' \
      'cd /opt/goodput/lib/python3*/site-packages' \
      'find . -depth -type d -name tests -exec rm -r {} +' \
      'find . -type f -name "*.p[yx][xdi]" -delete' \
      'rm -rf kubernetes/aio numpy/*/include pyarrow/include pyarrow/*flight* pyarrow/_substrait*' \
      'rm -f pyarrow/libarrow_python.so pyarrow/*.so.*.*.*' > /opt/tools/bin/slim \
 && chmod 755 /opt/tools/bin/slim

# One stage of dependencies for each image: rebuilt only when its constraints change.
FROM tools AS operator-dependencies
ARG PIP_CERT
COPY constraints/operator.txt /constraints/
RUN --mount=type=cache,target=/var/cache/pip \
    /opt/tools/bin/pip --python /opt/goodput/bin/python install --quiet --require-hashes --requirement /constraints/operator.txt \
 && /opt/tools/bin/slim

FROM tools AS runner-dependencies
ARG PIP_CERT
COPY constraints/runner.txt /constraints/
RUN --mount=type=cache,target=/var/cache/pip \
    /opt/tools/bin/pip --python /opt/goodput/bin/python install --quiet --require-hashes --requirement /constraints/runner.txt \
 && /opt/tools/bin/slim

FROM tools AS analysis-dependencies
ARG PIP_CERT
COPY constraints/analysis.txt /constraints/
RUN --mount=type=cache,target=/var/cache/pip \
    /opt/tools/bin/pip --python /opt/goodput/bin/python install --quiet --require-hashes --requirement /constraints/analysis.txt \
 && /opt/tools/bin/slim

FROM tools AS engines-dependencies
ARG PIP_CERT
COPY constraints/engines.txt /constraints/
RUN --mount=type=cache,target=/var/cache/pip \
    /opt/tools/bin/pip --python /opt/goodput/bin/python install --quiet --require-hashes --requirement /constraints/engines.txt \
 && /opt/tools/bin/slim

# The project itself, laid out under /project as it will lie under /.
FROM tools AS project
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY analysis analysis
COPY runner runner
COPY operator operator
COPY engines engines
RUN /opt/tools/bin/pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir /wheels . \
 && /opt/tools/bin/pip --python /opt/goodput/bin/python install --quiet --no-warn-script-location --no-deps --no-index --root /project /wheels/*.whl

FROM ${BASE} AS image
ENV PATH=/opt/goodput/bin:/usr/local/bin:/usr/bin:/bin HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /tmp
USER 65532:65532

FROM image AS operator
ENTRYPOINT ["goodput-operator"]
COPY --from=operator-dependencies /opt/goodput /opt/goodput
COPY --from=project /project/opt/goodput/bin/goodput-operator /opt/goodput/bin/
COPY --from=project /project/opt/goodput/lib /opt/goodput/lib

FROM image AS runner
ENTRYPOINT ["goodput-runner"]
COPY --from=runner-dependencies /opt/goodput /opt/goodput
COPY --from=project /project/opt/goodput/bin/goodput-runner /opt/goodput/bin/
COPY --from=project /project/opt/goodput/lib /opt/goodput/lib

FROM image AS analysis
ENTRYPOINT ["goodput-analysis"]
COPY --from=analysis-dependencies /opt/goodput /opt/goodput
COPY --from=project /project/opt/goodput/bin/goodput-analysis /opt/goodput/bin/
COPY --from=project /project/opt/goodput/lib /opt/goodput/lib

FROM image AS engines
ENTRYPOINT ["goodput-engine-simulated"]
COPY --from=engines-dependencies /opt/goodput /opt/goodput
COPY --from=project /project/opt/goodput/bin/goodput-engine-simulated /opt/goodput/bin/
COPY --from=project /project/opt/goodput/lib /opt/goodput/lib
