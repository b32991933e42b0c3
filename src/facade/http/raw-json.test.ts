import { expect, test } from '@jest/globals';
import { expectShortTurns } from '../../../test/support/short-work.ts';
import { loopTurns } from '../../core/loop-turns.ts';
import { hasList, jsonTextInPieces } from './raw-json.ts';

test('No turn of the event loop is long for an answer with a list of 40 records of 50,000 values each', async () => {
  const answer = { data: Array.from({ length: 40 }, () => ({ values: new Array(50_000).fill(1) })), total: 40 };
  expect(hasList(answer)).toBe(true);
  let text = '';
  const run = async (): Promise<void> => {
    text = await loopTurns.of('org_a').run(jsonTextInPieces(answer));
  };
  await expectShortTurns(100, run);
  expect(text).toBe(JSON.stringify(answer));
});
