import { afterAll, describe, expect, test } from '@jest/globals';
import { lenientBy } from '../../test/support/lenient-clock.ts';
import type { TransformType } from './jobs.ts';
import { Sandbox } from './sandbox.ts';

const sandbox = new Sandbox({ clock: lenientBy(3), processes: 1 });
afterAll(() => sandbox.close());

const marked = (text: string): Buffer => Buffer.from(`\ufeff${text}`);

describe('a transform sees a payload without its byte order mark', () => {
  test.each<[TransformType, string, string, string]>([
    ['jsonata', '{"order": payload.id}', '{"id":1}', '{"order":1}'],
    ['jsonata', '$type(payload)', 'null', '"null"'],
    ['jsonata', 'payload', 'plain words', '"plain words"'],
    ['javascript', '({ payload }) => ({ order: payload.id })', '{"id":1}', '{"order":1}'],
    ['javascript', 'event.payload', '[1]', '[1]'],
    ['javascript', 'event.payload', 'plain words', '"plain words"'],
    ['liquid', 'Order {{ payload.id }}', '{"id":1}', 'Order 1'],
    ['liquid', '{{ payload }}', 'plain words', 'plain words'],
  ])('%s: %s of %s', async (type, code, text, expected) => {
    const { output } = await sandbox.transform(
      { organization: 'org_a' },
      { type, code },
      { description: '{"id":"evt_1"}', payload: marked(text) },
    );
    expect(output?.body).toBe(expected);
  });
});

test.each<[TransformType, string, string]>([
  ['jsonata', '{"order": payload.id}', '{"order":1}'],
  ['javascript', '({ payload }) => ({ order: payload.id })', '{"order":1}'],
  ['liquid', '{"order": {{ payload.id }}}', '{"order": 1}'],
])('code of type %s may have a byte order mark', async (type, code, expected) => {
  const event = { description: '{"id":"evt_1"}', payload: Buffer.from('{"id":1}') };
  const { output } = await sandbox.transform({ organization: 'org_a' }, { type, code: `\ufeff${code}` }, event);
  expect(output).toMatchObject({ body: expected, contentType: 'application/json' });
});

test.each<[string, string, string[]]>([
  ['{"required":["id"]}', '{"id":1}', []],
  ['{"required":["id"]}', '{}', ["must have required property 'id'"]],
  ['{"type":"object"}', '[]', ['must be object']],
  ['{}', 'no JSON', ['is not JSON']],
])('the schema %s checks %s after a byte order mark', async (schema, text, messages) => {
  const [problems = []] = await sandbox.validate({ organization: 'org_a' }, [schema], marked(text), { maxProblems: 1 });
  expect(problems.map(({ message }) => message)).toEqual(messages);
});
