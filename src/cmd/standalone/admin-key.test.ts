import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { startStandalone } from '../../../test/support/program.ts';

const directory = mkdtempSync(join(tmpdir(), 'posthorn-admin-key-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const keyOf = (letter: string): string => `ph_${letter.repeat(43)}`;

test.each([
  { where: 'the data directory', file: join(directory, 'kept', 'api-key'), first: undefined },
  { where: 'POSTHORN_API_KEY_FILE', file: join(directory, 'given-key'), first: keyOf('a') },
])(
  'another admin key in the file of $where is taken and the earlier one refused, without a restart',
  async ({ file, first }) => {
    if (first !== undefined) writeFileSync(file, first);
    const standalone = await startStandalone({
      environment: {
        POSTHORN_DATA_DIR: join(directory, first === undefined ? 'kept' : 'other'),
        ...(first !== undefined && { POSTHORN_API_KEY_FILE: file }),
      },
    });
    try {
      const status = async (key: string): Promise<number> => {
        const answer = await fetch(`${standalone.url}/api/sources`, { headers: { authorization: `Bearer ${key}` } });
        await answer.arrayBuffer();
        return answer.status;
      };
      const earlier = first ?? standalone.key;
      // An unknown key is looked up in Redis, which may be late on a busy machine.
      await eventually(async () => expect([await status(earlier), await status(keyOf('b'))]).toEqual([200, 401]), 60_000);
      writeFileSync(file, 'too short');
      await standalone.program.waitForOutput(/must have at least 32 characters.*the earlier one remains valid/);
      expect(await status(earlier)).toBe(200);
      writeFileSync(file, `${keyOf('b')}\n`);
      await eventually(async () => expect([await status(keyOf('b')), await status(earlier)]).toEqual([200, 401]), 60_000);
    } finally {
      await standalone.stop();
    }
  },
  150_000,
);
