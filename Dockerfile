# docker build -t stride .                       CPU device only
# docker build -t stride --build-arg BUILD_IMAGE=nvidia/cuda:13.0.2-devel-ubuntu24.04 --build-arg MAX_GLIBC=2.39 \
#   --build-arg RUN_IMAGE=nvidia/cuda:13.0.2-runtime-ubuntu24.04 .      with the CUDA worker
#   The image -runtime- has NVRTC, cuBLAS, cuSOLVER and cuFFT. The smaller -base- needs these packages: libcublas-13-0,
#   cuda-nvrtc-13-0, libcusolver-13-0, libcufft-13-0. Kernels with float16 and bfloat16 also need the toolkit's headers:
#   package cuda-cudart-dev-13-0, or the image -devel-.
# docker run --read-only --cap-drop=all --tmpfs /tmp -v stride:/var/lib/stride -v /run/stride:/run/stride stride
#   --device nvidia.com/gpu=all adds the GPUs; deploy/docker/README.md has the rest.
ARG BUILD_IMAGE=debian:bookworm
ARG RUN_IMAGE=debian:bookworm-slim

FROM ${BUILD_IMAGE} AS build
ARG MAX_GLIBC=2.36
WORKDIR /src
# Apart from the sources, so that an edit does not install the packages again.
COPY scripts/setup scripts/requirements.txt scripts/
RUN scripts/setup --build-only
COPY . .
RUN cmake --preset portable -DSTRIDE_BUILD_TESTS=OFF -DSTRIDE_BUILD_BENCH=OFF \
 && cmake --build --preset portable \
 && DESTDIR=/image cmake --install build/portable --component runtime --prefix /usr --strip \
 && MAX_GLIBC=${MAX_GLIBC} ci/check-portable /image/usr/bin/* /image/usr/lib/stride/stride-* \
 && mkdir -p /image/var/lib/stride /image/run/stride && chmod 0700 /image/var/lib/stride

FROM ${RUN_IMAGE}
COPY --from=build --chown=65532:65532 /image/var/lib/stride /var/lib/stride
COPY --from=build --chown=65532:65532 /image/run/stride /run/stride
COPY --from=build /image/usr /usr
# By number, so that Kubernetes can see that it is not root.
USER 65532:65532
ENV STRIDE_ADDRESS=unix:/run/stride/stride.sock NVIDIA_DRIVER_CAPABILITIES=compute,utility
STOPSIGNAL SIGTERM
# Asks the daemon, and no device for work: a busy one is healthy.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["stride", "devices", "--json"]
# Two processes: the first keeps arrays, jobs and the socket, and starts the second again when it dies.
ENTRYPOINT ["strided", "--supervise", "--state-dir=/var/lib/stride", "--log-format=json"]
CMD ["--listen=unix:/run/stride/stride.sock"]
