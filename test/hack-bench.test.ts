import { createServer } from 'node:http';
import { describe, expect, test } from '@jest/globals';
import { startEndpoints } from '../hack/bench/lib/endpoints.ts';
import { compare } from '../hack/bench/lib/exact-delivery.ts';
import { startSink } from '../hack/bench/lib/sink.ts';
import { Sender } from '../hack/bench/lib/traffic.ts';

const nothing = { accepted: [], uncertain: [] };

function arrivals(...numbers: number[]): { arrivals: Map<number, number> } {
  const times = new Map<number, number>();
  for (const number of numbers) times.set(number, (times.get(number) ?? 0) + 1);
  return { arrivals: times };
}

describe('the check for exact delivery', () => {
  test('the check for exact delivery does not let an event that nobody sent hide a lost one', () => {
    const received = [{ sink: arrivals(1, 3), sent: [{ accepted: [1, 2], uncertain: [] }] }];
    expect(compare(received)).toEqual({ lost: 1, unexpected: 1, duplicated: 0 });
  });

  test('the check for exact delivery does not let what came to one receiver make up for what another misses', () => {
    const received = [
      { sink: arrivals(1, 2), sent: [{ accepted: [1], uncertain: [] }] },
      { sink: arrivals(), sent: [{ accepted: [2], uncertain: [] }] },
    ];
    expect(compare(received)).toEqual({ lost: 1, unexpected: 1, duplicated: 0 });
  });

  test('the check for exact delivery counts each arrival beyond the first', () => {
    expect(compare([{ sink: arrivals(1, 1, 1), sent: [{ accepted: [1], uncertain: [] }] }])).toEqual({
      lost: 0,
      unexpected: 0,
      duplicated: 2,
    });
  });

  test('the check for exact delivery takes an event without an answer neither for lost nor for unexpected', () => {
    const sent = [{ accepted: [], uncertain: [1, 2] }, nothing];
    expect(compare([{ sink: arrivals(1), sent }])).toEqual({ lost: 0, unexpected: 0, duplicated: 0 });
  });

  test('the check for exact delivery of many endpoints reads each by itself', async () => {
    const endpoints = await startEndpoints();
    const sender = new Sender(endpoints.sink.origin, 1);
    try {
      const { accepted, uncertain } = await sender.closedLoop('/a', 1, 1);
      await sender.closedLoop('/b', 1, 1);
      const sent = [{ accepted, uncertain }];
      expect(endpoints.compare(sent, () => new Set(['/a', '/c']))).toEqual({ lost: 1, unexpected: 1, duplicated: 0 });
      expect(endpoints.deliveries()).toBe(2);
    } finally {
      await sender.close();
      endpoints.sink.close();
    }
  });
});

describe('a sender', () => {
  test('a sender knows which events were accepted and which are uncertain', async () => {
    let count = 0;
    const server = createServer((request, response) => {
      const answers = [200, 400, 503, null];
      const status = answers[count++ % answers.length] ?? null;
      if (status === null) return void request.socket.resetAndDestroy();
      request.resume();
      response.statusCode = status;
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const sender = new Sender(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`, 1);
    try {
      const { accepted, uncertain, refused, answerMs } = await sender.closedLoop('/', 8, 1);
      const first = accepted[0] ?? Number.NaN;
      expect(accepted).toEqual([first, first + 4]);
      expect(uncertain).toEqual([first + 2, first + 3, first + 6, first + 7]);
      expect(refused).toBe(6);
      expect(answerMs).toHaveLength(8);
    } finally {
      await sender.close();
      server.close();
    }
  });

  test('a sender uses no number that another one has used', async () => {
    const sink = await startSink();
    const senders = [new Sender(sink.origin, 1), new Sender(sink.origin, 1)];
    try {
      for (const sender of senders) await sender.closedLoop('/', 3, 1);
      expect(sink.arrivals.size).toBe(6);
    } finally {
      for (const sender of senders) await sender.close();
      sink.close();
    }
  });
});
