# `regard serve` in a container, as a user without rights, with the model that comes along.
#
#   docker build -t regard .
#   docker run --rm -p 127.0.0.1:8000:8000 -e REGARD_API_KEY=a-long-secret regard
#   docker run --rm -p 127.0.0.1:8000:8000 -v ./my-model:/model:ro regard regard serve /model --host 0.0.0.0
#
# torch for CPUs alone is a tenth of the size: --build-arg PIP_EXTRA_INDEX_URL=... names where it is.
FROM python:3.11-slim

ARG PIP_EXTRA_INDEX_URL=
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir --disable-pip-version-check -c constraints.txt . \
    && rm -rf /build \
    && useradd --create-home --uid 10001 regard

USER regard
WORKDIR /home/regard
ENV PYTHONUNBUFFERED=1
# Converted once, here, so that the container starts quickly and may be read-only.
RUN regard translate 一 > /dev/null

EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"]
# To be stopped it is sent SIGTERM, and finishes what is in flight.
CMD ["regard", "serve", "--host", "0.0.0.0"]
