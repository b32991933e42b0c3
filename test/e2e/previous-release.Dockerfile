FROM localhost/posthorn:dev
ADD posthorn.tar.gz /app/
# The audit log of the API server tells the releases apart by it, and both may have the same.
USER 0
RUN sed -i 's/"version": "\([^"]*\)"/"version": "\1-previous"/' package.json
USER 1000:1000
ENTRYPOINT ["node", "--max-semi-space-size=16", "/app/src/cmd/posthorn.ts"]
