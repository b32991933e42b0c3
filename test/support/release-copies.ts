import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from './eventually.ts';
import { freePort } from './ports.ts';
import { type Program, programSource, startProgram } from './program.ts';

const root = new URL('../../', import.meta.url).pathname;

/** The text of another release for one that is in the file once. */
export type Edit = readonly [file: string, from: string, to: string];

export interface ReleaseCopy {
  folder: string;
  /** File of the program. */
  file: string;
  remove(): void;
}

/** The program of this release. */
export const thisRelease = programSource;

/** A copy of this release, changed to what another one is: its version, single texts, and words in all scripts of the queue. */
export function copyRelease({
  version,
  edits,
  words = [],
}: {
  version: string;
  edits: readonly Edit[];
  words?: readonly (readonly [from: string, to: string])[];
}): ReleaseCopy {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-releases-'));
  cpSync(join(root, 'src'), join(folder, 'src'), { recursive: true });
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as object;
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, version }));
  for (const [file, from, to] of edits) {
    const [before, after, ...more] = readFileSync(join(folder, file), 'utf8').split(from);
    if (after === undefined || more.length > 0) throw new Error(`${file} does not have ${from} once`);
    writeFileSync(join(folder, file), `${before}${to}${after}`);
  }
  const queue = join(folder, 'src/data/queue');
  const scripts = readdirSync(queue, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.lua'));
  for (const [from, to] of words) {
    const having = scripts.filter((name) => readFileSync(join(queue, name), 'utf8').includes(from));
    if (having.length === 0) throw new Error(`no script of the queue has ${from}`);
    for (const name of having) writeFileSync(join(queue, name), readFileSync(join(queue, name), 'utf8').replaceAll(from, to));
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return { folder, file: join(folder, 'src/cmd/posthorn.ts'), remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** A role of an installation, as a process. */
export interface RoleProcess {
  program: Program;
  port: number;
  opsPort: number;
}

export async function startRole(file: string, role: string, environment: Record<string, string>): Promise<RoleProcess> {
  const [port, opsPort] = [await freePort(), await freePort()];
  const ports = { POSTHORN_PORT: String(port), POSTHORN_OPS_PORT: String(opsPort) };
  return { program: startProgram([role], { ...ports, ...environment }, file), port, opsPort };
}

/** Waits until the process is ready. */
export async function readyRole(process: RoleProcess): Promise<RoleProcess> {
  await eventually(
    `a process to be ready (${process.program.output()})`,
    180_000,
    async () => (await fetch(`http://127.0.0.1:${process.opsPort}/readyz`)).ok,
  );
  return process;
}

/** The environment of all roles on one Redis, with the resources in it. */
export function installationEnvironment(redisUrl: string, shards: number): Record<string, string> {
  return {
    POSTHORN_HOST: '127.0.0.1',
    POSTHORN_REDIS_URL: redisUrl,
    POSTHORN_REDIS_MEMORY_LIMIT: '4gb',
    POSTHORN_RESOURCE_STORE: 'redis',
    POSTHORN_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
    POSTHORN_EGRESS_ALLOWED_CIDRS: '127.0.0.0/8',
    POSTHORN_SHARDS: String(shards),
    POSTHORN_LOG_LEVEL: 'error',
  };
}
