# The Redis of the development cluster, on the base image that the program's image has too.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends redis-server && rm -rf /var/lib/apt/lists/*
USER 1000:1000
ENTRYPOINT ["redis-server"]
