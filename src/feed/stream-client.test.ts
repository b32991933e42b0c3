import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { SeenEvents } from '../../test/support/stream-clients.ts';
import { parseFeedRow } from '../data/feed/feed-row.ts';
import { streamMetrics } from './metrics.ts';
import { StreamClient } from './stream-client.ts';
import { streamLimits } from './stream-limits.ts';

const org = 'org_a';
/** An event of this organization that was stored. */
const stored = (owner: string, id: string) => ({ shard: 0, id, text: `e p ${owner} ${'a'.repeat(25)} src_a` });

test('a client refuses the rows of other organizations, live ones and missed ones', async () => {
  const leaving = new AbortController();
  const request = {
    organization: org,
    credential: 'key_a',
    lastEventId: null,
    matches: () => true,
    show: (row: object) => ({ type: 'row', json: JSON.stringify(row) }),
    isAllowed: async () => true,
    signal: leaving.signal,
  };
  const client = new StreamClient(request, {
    clock: new FakeClock(),
    limits: streamLimits,
    metrics: streamMetrics(new Registry()),
    position: () => 'start',
    onEnd: () => undefined,
  });
  client.holdLive();
  const owners = ['org_b', org, '+org_b', '+org_a', '~org_a', ''];
  owners.forEach((owner, i) => {
    const { shard, id, text } = stored(owner, `${i + 10}-0`);
    const row = parseFeedRow(shard, id, text);
    if (row !== null) client.push(row, `live${i}`);
  });
  const missed = async function* () {
    yield owners.map((owner, i) => ({ row: stored(owner, `${i}-0`), id: `missed${i}` }));
  };
  const seen = new SeenEvents();
  for await (const text of client.pieces(missed())) {
    seen.add(text);
    if (seen.all.length === 4) leaving.abort();
  }
  expect(seen.all.map(({ id }) => id)).toEqual(['missed1', 'missed3', 'live1', 'live3']);
});
