import { expect, test } from '@jest/globals';
import { eventSplitter, type ServerEvent } from './server-events.ts';

const text = 'retry: 2000\nid: 1\n\n: a comment\n\nevent: delivery.delivered\nid: 2\ndata: {"a":\ndata: 1}\n\nevent: reset\ndata: {}\n\n';

test.each([1, 2, 7, text.length])('events are the same in pieces of %d characters', (size) => {
  const events: ServerEvent[] = [];
  const split = eventSplitter((event) => void events.push(event));
  for (let at = 0; at < text.length; at += size) split(text.slice(at, at + size));
  expect(events).toEqual([
    { event: 'message', id: '1', data: '' },
    { event: 'delivery.delivered', id: '2', data: '{"a":\n1}' },
    { event: 'reset', id: null, data: '{}' },
  ]);
});

test('an event that has not ended is not given', () => {
  const events: ServerEvent[] = [];
  eventSplitter((event) => void events.push(event))('id: 1\ndata: half\n');
  expect(events).toEqual([]);
});
