# By digest: a tag may name another image tomorrow. docs/security.md says how to move to a newer one.
ARG BASE_IMAGE=docker.io/library/node:24-bookworm-slim@sha256:6f7b03f7c2c8e2e784dcf9295400527b9b1270fd37b7e9a7285cf83b6951452d

FROM ${BASE_IMAGE} AS build
ARG BASE_IMAGE
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# hack/lib/toolchain.sh says why this is not `npm ci`.
RUN --mount=type=secret,id=npmrc NPM_CONFIG_USERCONFIG=/run/secrets/npmrc npm install --no-save --loglevel error
COPY tsconfig.json tsconfig.build.json ./
COPY hack/build.ts hack/files-digest.ts hack/sbom.ts hack/web.ts hack/web-packages.ts hack/
COPY src src
RUN npm run build && npm prune --omit=dev --loglevel error

FROM ${BASE_IMAGE}
# Of two pools for what is freed, not one for each thread, more goes back to the system: 2 MB of each process.
ENV NODE_ENV=production MALLOC_ARENA_MAX=2
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY LICENSE ./
USER 1000:1000
EXPOSE 8080 9090
# The program handles SIGTERM itself, so it may be process 1.
# Node's own choice of young generation is far too small below a memory limit (half again as much time in the collector). A
# larger one is collected less often, but everything stands still for longer: 3 ms each time with 4 MB, 10 ms and more with 16.
# Until a process has work (src/cmd/start-memory.ts), V8 compiles nothing of what runs often, which until then are the functions that find and
# read modules: the pages of its compilers are 9 MB that no idle process needs in its memory.
ENTRYPOINT ["node", "--max-semi-space-size=4", "--no-sparkplug", "--maglev-filter=none", "--turbo-filter=none", "/app/dist/cmd/posthorn.js"]
