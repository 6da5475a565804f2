# A small image of `diagnose`: built from the source with pinned versions, run without root, nothing writable but /data.
ARG PYTHON=3.13.7-slim-bookworm

FROM python:${PYTHON} AS build
WORKDIR /src
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/diagnoser
COPY .ci/constraints.txt pyproject.toml README.md LICENSE ./
COPY diagnoser ./diagnoser
COPY rules ./rules
RUN /opt/diagnoser/bin/pip install -c constraints.txt . \
    && /opt/diagnoser/bin/python -m pip uninstall --yes pip \
    && rm -r /opt/diagnoser/lib/python3.*/site-packages/pandas/tests \
    && find /opt/diagnoser/lib/python3.*/site-packages/babel/locale-data -name '*.dat' \
       ! -name 'root.dat' ! -name 'en.dat' ! -name 'zh*.dat' -delete

FROM python:${PYTHON} AS run
LABEL org.opencontainers.image.title="diagnose" \
      org.opencontainers.image.description="Names the gate that keeps requests waiting in vLLM and SGLang engines" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --gid 10001 diagnoser \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin diagnoser \
    && install --directory --owner=10001 --group=10001 --mode=0700 /data
COPY --from=build /opt/diagnoser /opt/diagnoser
ENV PATH=/opt/diagnoser/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /data
VOLUME ["/data"]
EXPOSE 9180
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:9180/healthz', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["diagnose"]
CMD ["serve", "--config", "/etc/diagnoser/diagnoser.yaml"]
