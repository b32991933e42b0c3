FROM localhost/posthorn:dev
ADD posthorn.tar.gz /app/
ENTRYPOINT ["node", "--max-semi-space-size=16", "/app/src/cmd/posthorn.ts"]
