# flmarket in a container, with PyTorch's CPU build and the compiled kernel:
#
#     docker build -t flmarket .
#     docker run --rm -it -v "$PWD:/work" flmarket run quickstart
#     docker run --rm -it -v "$PWD:/work" flmarket tui
FROM python:3.12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir uv && uv venv /opt/flmarket
ENV VIRTUAL_ENV=/opt/flmarket
COPY . /source
RUN uv pip install --torch-backend cpu --constraint /source/constraints.txt '/source[torch]'

FROM python:3.12-slim
COPY --from=build /opt/flmarket /opt/flmarket
ENV PATH=/opt/flmarket/bin:$PATH FLMARKET_DATA=/work/data
WORKDIR /work
ENTRYPOINT ["flmarket"]
