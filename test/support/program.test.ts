import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { eventually } from './eventually.ts';
import { freePort } from './ports.ts';
import { childPids, startProgram } from './program.ts';

test('a standalone that a test has killed leaves no redis-server behind once it is stopped', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-program-'));
  const program = startProgram(['standalone'], { POSTHORN_PORT: String(await freePort()), POSTHORN_DATA_DIR: directory });
  try {
    await program.waitForOutput(/^posthorn ready /m);
    const [redis = 0] = childPids(program.pid, 'redis/start.sock');
    expect(redis).toBeGreaterThan(0);
    program.signal('SIGKILL');
    expect(await program.ended).toBe('SIGKILL');
    expect(isAlive(redis)).toBe(true);
    await program.stop();
    await eventually(() => expect(isAlive(redis)).toBe(false));
  } finally {
    await program.stop();
    rmSync(directory, { recursive: true, force: true });
  }
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
