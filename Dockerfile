# An image with nothing but tokenrun and the certificates by which it knows a database.
#
#     docker build -t tokenrun .
#
# A job's image takes both from it; examples/kubernetes/Dockerfile shows how.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
# musl, with which a process starts in half the time.
RUN apt-get update && apt-get install -y --no-install-recommends musl-tools && rustup target add "$(uname -m)-unknown-linux-musl"
RUN packaging/static-binary /out

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/bin/tokenrun /usr/local/bin/tokenrun
# Without a name: there is no /etc/passwd.
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/tokenrun"]
