import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from '@jest/globals';

const run = promisify(execFile);
const directory = mkdtempSync(join(tmpdir(), 'posthorn-hack-processes-'));
const root = new URL('../', import.meta.url).pathname;

afterAll(() => {
  for (const file of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.pid')) continue;
    try {
      process.kill(Number(readFileSync(join(directory, file), 'utf8')), 'SIGKILL');
    } catch {
      // it has ended
    }
  }
  rmSync(directory, { recursive: true });
});

/** Runs these lines of bash after hack/lib/processes.sh, with a state directory of their own; returns what they print. */
async function bash(lines: string, ...args: string[]): Promise<string> {
  const state = mkdtempSync(join(directory, 'state-'));
  const script = `set -euo pipefail\n. hack/lib/toolchain.sh\n. hack/lib/processes.sh\n${lines}`;
  const { stdout } = await run('bash', ['-c', script, 'processes', ...args], { cwd: root, env: { ...process.env, CLUSTER_DIR: state } });
  return stdout.trim();
}

/** A server that listens on the port of its second argument; its first is a file of the state, by which it is known. */
const server = join(directory, 'server.mjs');
writeFileSync(
  server,
  `import { createServer } from 'node:http';
  createServer((_, response) => response.end(String(process.pid))).listen(Number(process.argv[3]), '127.0.0.1');`,
);

test('a server whose port is taken before it binds it starts on another one', async () => {
  const taker = createServer((socket) => socket.resume().on('error', () => undefined));
  await new Promise<void>((resolve) => taker.listen(0, '127.0.0.1', resolve));
  const address = taker.address();
  const taken = typeof address === 'object' && address !== null ? address.port : 0;
  const port = await bash(
    `server=$1 taken=$2
    is_ready() { curl --fail --silent --max-time 5 "http://127.0.0.1:$port/"; }
    start_server() { start server node "$server" "$state/server" "$port"; }
    eval "really_$(declare -f free_port)"
    free_port() { if [ -e "$state/asked" ]; then really_free_port; else touch "$state/asked" && echo "$taken"; fi; }
    start_on_free_port server 30 start_server is_ready
    echo "$port"
    stop server`,
    server,
    String(taken),
  );
  taker.close();
  expect(Number(port)).toBeGreaterThan(0);
  expect(Number(port)).not.toBe(taken);
});

test('a server that ends for another reason is not started again', async () => {
  const started = bash(
    `start_broken() { echo once >&2; start broken node -e 'throw new Error("no such flag")' "$state/broken"; }
    start_on_free_port broken 30 start_broken false`,
  );
  const { stderr } = await started.then(
    () => ({ stderr: 'it started' }),
    (error: { stderr: string }) => error,
  );
  expect(stderr).toContain('broken stopped:');
  expect(stderr.match(/once/g)).toHaveLength(1);
});

test('two scripts get no port twice while they run', async () => {
  const ports = await bash('for _ in 1 2 3 4 5; do free_port & free_port; wait; done');
  const all = ports.split('\n');
  expect(all).toHaveLength(10);
  expect(new Set(all).size).toBe(10);
});

test('a process is alive also in the moment in which it goes over to another program', async () => {
  const again = join(directory, 'again.sh');
  // Hundreds of programs one after the other, in the same process.
  writeFileSync(again, 'exec "$BASH" "$0" "$@"\n');
  const dead = await bash(
    `start again "$BASH" "$1" "$state/again"
    dead=0
    for _ in $(seq 400); do alive again || dead=$((dead + 1)); done
    stop again
    echo $dead`,
    again,
  );
  expect(dead).toBe('0');
});

test('a process that has ended and that nobody has reaped is not alive', async () => {
  const parent = join(directory, 'parent.mjs');
  writeFileSync(
    parent,
    `import { spawn } from 'node:child_process';
    import { writeFileSync } from 'node:fs';
    writeFileSync(process.argv[2] + '.pid', String(spawn('true', [process.argv[2]]).pid));
    for (;;);`,
  );
  const state = await bash(
    `node "$1" "$state/ended" &
    until [ -s "$state/ended.pid" ] && grep -q '^State:.Z' "/proc/$(cat "$state/ended.pid")/status"; do sleep 0.1; done
    if alive ended; then echo alive; else echo dead; fi
    kill -KILL $!`,
    parent,
  );
  expect(state).toBe('dead');
});
