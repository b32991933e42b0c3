/** Options of redis-server: it keeps an AOF, which goes to the disk every second. */
export const withAof = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec'];

/** The same for payloads above 1 MiB, as in docs/operations.md. */
export const withLargeAof = [...withAof, '--auto-aof-rewrite-min-size', '1gb'];
