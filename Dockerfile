# syntax=docker/dockerfile:1
# The product's image: `docker build --target tidewaiter -t NAME .`; the image of the demo's and tests' agents and Git
# server: `docker build --target testbed -t NAME .`.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY controllers controllers
COPY internal internal
COPY test test
ENV CGO_ENABLED=0
RUN go build -trimpath -buildvcs=false -ldflags '-s -w' -o /out/ ./cmd/manager ./cmd/gateway ./cmd/watchdog ./cmd/runner ./cmd/worker ./cmd/tidewaiter ./test/gitserver ./test/mcpagent ./test/modelprovider

FROM debian:bookworm-slim AS base
RUN apt-get update && apt-get install -y --no-install-recommends git ca-certificates && rm -rf /var/lib/apt/lists/*

FROM base AS testbed
COPY --from=build /out/gitserver /out/mcpagent /out/modelprovider /usr/local/bin/
USER 1000:1000

FROM base AS tidewaiter
COPY --from=build /out/manager /out/gateway /out/watchdog /out/runner /out/worker /out/tidewaiter /usr/local/bin/
USER 65532:65532
