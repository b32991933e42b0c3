import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Standalone, startStandalone } from '../support/program.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';

/** What `hack/test` has installed. */
const tools =
  process.env['POSTHORN_CLIENT_GENERATORS'] ??
  join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'posthorn/client-generators');
const programs = new URL('programs/', import.meta.url).pathname;
const testWith = (tool: string) => (existsSync(join(tools, tool)) ? test : test.skip);

let standalone: Standalone;
let receiver: Receiver;
let directory: string;
let document: string;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-clients-'));
  receiver = await startReceiver();
  standalone = await startStandalone({ environment: { POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true', POSTHORN_LOG_LEVEL: 'warn' } });
  document = join(directory, 'openapi.json');
  writeFileSync(document, await (await fetch(`${standalone.url}/openapi.json`)).text());
}, 180_000);
afterAll(async () => {
  await standalone?.stop();
  await receiver?.close();
  rmSync(directory, { recursive: true, force: true });
});

/** Runs a command in the directory; what it wrote, or an error with it. */
async function run(at: string, command: string, args: readonly string[]): Promise<string> {
  const environment = { POSTHORN_URL: standalone.url, POSTHORN_KEY: standalone.key, RECEIVER_URL: receiver.url };
  const { stdout } = await promisify(execFile)(command, args, {
    cwd: at,
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, PATH: `${process.env['PATH']}:/usr/local/go/bin`, PYTHONDONTWRITEBYTECODE: '1', ...environment },
  }).catch((error: { stdout: string; stderr: string }) => {
    throw new Error(`${command} ${args.join(' ')}\n${error.stdout?.slice(-4000)}\n${error.stderr?.slice(-4000)}`);
  });
  return stdout;
}

function project(name: string): string {
  const at = join(directory, name);
  mkdirSync(at);
  return at;
}

testWith('typescript/node_modules/openapi-typescript')(
  'a TypeScript client of the OpenAPI document compiles and does what the API does',
  async () => {
    const at = project('typescript');
    const bin = join(tools, 'typescript/node_modules/.bin');
    symlinkSync(join(tools, 'typescript/node_modules'), join(at, 'node_modules'));
    writeFileSync(join(at, 'package.json'), '{"type": "module"}');
    cpSync(join(programs, 'smoke.ts.txt'), join(at, 'smoke.ts'));
    symlinkSync(join(process.cwd(), 'node_modules/@types'), join(at, 'types'));
    await run(at, join(bin, 'openapi-typescript'), [document, '--output', 'schema.d.ts', '--default-non-nullable', 'false']);
    const strict = ['--strict', '--noEmit', '--target', 'es2024', '--module', 'nodenext', '--allowImportingTsExtensions'];
    await run(at, join(bin, 'tsc'), [...strict, '--typeRoots', 'types', '--types', 'node', 'smoke.ts']);
    expect(await run(at, process.execPath, ['smoke.ts'])).toBe('done\n');
  },
  300_000,
);

testWith('python/bin/openapi-python-client')(
  'a Python client of the OpenAPI document can be imported whole and does what the API does',
  async () => {
    const at = project('python');
    const bin = join(tools, 'python/bin');
    writeFileSync(join(at, 'config.yaml'), 'post_hooks: []\n');
    const generated = ['generate', '--path', document, '--meta', 'none', '--output-path', 'posthorn_client', '--config', 'config.yaml'];
    await run(at, join(bin, 'openapi-python-client'), generated);
    const whole = [
      'import importlib, pkgutil, posthorn_client',
      'for module in pkgutil.walk_packages(posthorn_client.__path__, "posthorn_client."): importlib.import_module(module.name)',
    ].join('\n');
    await run(at, join(bin, 'python'), ['-c', whole]);
    cpSync(join(programs, 'smoke.py'), join(at, 'smoke.py'));
    expect(await run(at, join(bin, 'python'), ['smoke.py'])).toBe('done\n');
  },
  300_000,
);

testWith('bin/oapi-codegen')(
  'a Go client of the OpenAPI document compiles and does what the API does',
  async () => {
    const at = project('go');
    mkdirSync(join(at, 'client'));
    for (const file of ['go.mod', 'go.sum']) cpSync(join(programs, `${file}.txt`), join(at, file));
    cpSync(join(programs, 'smoke.go'), join(at, 'main.go'));
    await run(at, join(tools, 'bin/oapi-codegen'), ['-generate', 'types,client', '-package', 'client', '-o', 'client/client.go', document]);
    expect(await run(at, 'go', ['run', '.'])).toBe('done\n');
  },
  300_000,
);
