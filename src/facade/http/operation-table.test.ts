import { describe, expect, test } from '@jest/globals';
import { PosthornError } from '../../core/errors.ts';
import { families } from '../families/families.ts';
import { OperationTable } from './operation-table.ts';

const operations = families.flatMap((family) => family.operations);
const table = new OperationTable(operations);
const idsOf = (path: string) => table.find(path).operations.map(({ operationId }) => operationId);

test('every operation is found at its path, with the values of its parameters', () => {
  for (const operation of operations) {
    const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
    const values = Object.fromEntries(names.map((name) => [name, `a ${name}/ä`]));
    const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ''));
    expect(table.find(path)).toEqual({ operations: expect.arrayContaining([operation]), params: values });
  }
});

test('a path is another than one that has a parameter in its place', () => {
  expect(idsOf('/outbound-messages/export')).not.toEqual(idsOf('/outbound-messages/msg_a'));
});

test('a slash at the end means nothing', () => {
  expect(idsOf('/send-event/')).toEqual(idsOf('/send-event'));
  expect(idsOf('/sources/src_a/')).toEqual(idsOf('/sources/src_a'));
});

describe('there is nothing at', () => {
  test.each([
    '',
    '/',
    '/nothing',
    '/Sources',
    '/sources//',
    '/sources//x',
    '//sources',
    '/send%2devent',
    '/sources/%ff',
    '/sources/a/b/c',
    '/__proto__',
  ])('%j', (path) => {
    expect(() => table.find(path)).toThrow(PosthornError);
  });
});
