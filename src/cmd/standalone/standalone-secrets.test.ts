import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

test('processes that make the secrets of a data directory at the same time get the same ones', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-secrets-'));
  try {
    const code = `
      const { standaloneSecrets } = await import(${JSON.stringify(new URL('./standalone-secrets.ts', import.meta.url).href)});
      while (Date.now() < ${Date.now() + 3000}) {}
      for (let i = 0; i < 200; i++) {
        const { encryptionKeys, apiKey } = standaloneSecrets(${JSON.stringify(directory)} + '/' + i, { encryptionKeys: [] });
        console.log(encryptionKeys[0].key.toString('hex'), apiKey);
      }`;
    const run = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', code]);
    const said = await Promise.all(Array.from({ length: 6 }, run));
    expect(new Set(said.map(({ stdout }) => stdout)).size).toBe(1);
    expect(readdirSync(join(directory, '0')).sort()).toEqual(['api-key', 'encryption-keys']);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
