import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from '@jest/globals';
import { families } from '../families/families.ts';
import type { Caller } from './caller.ts';
import { OpenRequests, openRequestLimits } from './open-requests.ts';
import type { Operation } from './operation.ts';

const callerOf = (id: string, key = 1) => ({ organization: { id }, credential: { id: `key_${key}` } }) as Caller;
/** Callers with several keys, as one alone leaves capacity to others. */
const callersOf = (id: string, count: number) => Array.from({ length: count }, (_, i) => callerOf(id, i));
const answer = (ended = Promise.resolve()) => ({ response: new ServerResponse(new IncomingMessage(new Socket())), ended });
/** All that follows from what has just happened. */
const settled = () => new Promise((resolve) => setImmediate(resolve));
const operation = (method: string, path: string) => ({ method, path, answer: { status: 200, description: '' } }) as Operation;

test('an organization has a bounded number of requests under way, others theirs, and each place is free again when its answer ends', async () => {
  const requests = new OpenRequests();
  const open = Array.from({ length: openRequestLimits.all }, () => answer());
  for (const [i, each] of open.entries()) requests.enter(callerOf('a', i), each);
  expect(() => requests.enter(callerOf('a'), answer())).toThrow(expect.objectContaining({ code: 'RATE_LIMITED', retryAfterSeconds: 1 }));
  requests.enter(callerOf('b'), answer());
  open[0]?.response.emit('close');
  await settled();
  requests.enter(callerOf('a', 0), answer());
});

test('a key that takes all places it gets leaves some to other keys of its organization', () => {
  const requests = new OpenRequests();
  const fill = (key: number, enter: (caller: Caller) => void): number => {
    for (let entered = 0; ; entered++) {
      try {
        enter(callerOf('a', key));
      } catch {
        return entered;
      }
    }
  };
  const enter = (caller: Caller) => requests.enter(caller, answer());
  const scan = (caller: Caller) => requests.enterScan(caller, operation('GET', '/events'), answer());
  expect([1, 2, 3].map((key) => fill(key, enter))).toEqual([1000, 167, 83]);
  expect([1, 2, 3].map((key) => fill(key, scan))).toEqual([64, 11, 5]);
});

test('a client that hangs up leaves its place free only when the work for it has ended', async () => {
  const requests = new OpenRequests();
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const open = Array.from({ length: openRequestLimits.scans }, () => answer(ended));
  for (const [i, each] of open.entries()) requests.enterScan(callerOf('a', i), operation('GET', '/events'), each);
  for (const { response } of open) response.emit('close');
  await settled();
  const enter = () => requests.enterScan(callerOf('a'), operation('GET', '/events'), answer());
  expect(enter).toThrow(expect.objectContaining({ code: 'RATE_LIMITED' }));
  end();
  await settled();
  expect(enter).not.toThrow();
});

test('what explains a record, or why subscriptions did not get an event, and a cancel of many take a place of those that scan', () => {
  const isScan = (path: string) => families.flatMap(({ operations }) => operations).find((each) => each.path === path)?.isScan;
  expect(['/explain/{id}', '/webhook-events/{id}', '/events/{id}'].map(isScan)).toEqual([true, true, undefined]);
  const cancels = ['/deliveries/cancel', '/deliveries/bulk-cancel', '/outbound-messages/cancel', '/outbound-messages/cancel-bulk'];
  expect(cancels.map(isScan)).toEqual([true, true, true, true]);
});

test('lists, analytics and exports have a smaller share, and what reads one record or writes has none of it', () => {
  const requests = new OpenRequests();
  for (const caller of callersOf('a', openRequestLimits.scans))
    requests.enterScan(caller, operation('GET', '/outbound-messages/export'), answer());
  for (const path of ['/events', '/analytics', '/outbound-messages/export'])
    expect(() => requests.enterScan(callerOf('a'), operation('GET', path), answer())).toThrow(
      expect.objectContaining({ code: 'RATE_LIMITED' }),
    );
  requests.enterScan(callerOf('a'), operation('GET', '/events/{id}'), answer());
  requests.enterScan(callerOf('a'), operation('POST', '/send-event'), answer());
  expect(() => requests.enterScan(callerOf('a'), { ...operation('GET', '/explain/{id}'), isScan: true }, answer())).toThrow(
    expect.objectContaining({ code: 'RATE_LIMITED' }),
  );
  requests.enterScan(callerOf('b'), operation('GET', '/events'), answer());
});
