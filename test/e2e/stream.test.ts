import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { startStandalone } from '../support/program.ts';
import { SeenEvents } from '../support/stream-clients.ts';

test('a stream over the one port of standalone shows what is ingested, and says when the program stops', async () => {
  const standalone = await startStandalone();
  try {
    const { url, key } = standalone;
    const authorization = `Bearer ${key}`;
    const made = await fetch(`${url}/api/sources`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Shop' }),
    });
    const source = (await made.json()) as { id: string; ingestUrl: string };
    const asked = request(`${url}/api/stream?topics=events`, { headers: { authorization }, agent: false }).end();
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    const seen = new SeenEvents();
    answer.setEncoding('utf8').on('data', (text: string) => seen.add(text));
    await eventually('the event to be accepted', 30_000, async () => {
      const sent = await fetch(url + new URL(source.ingestUrl).pathname, { method: 'POST', body: '{}' });
      return sent.ok;
    });
    await eventually('the row', 30_000, () => seen.types().includes('event.received') || undefined);
    expect(seen.all[0]?.data).toMatchObject({ sourceId: source.id, sourceName: 'Shop', status: 'no_routes' });
    const ended = once(answer, 'end');
    await standalone.program.stop();
    await ended;
    expect(seen.types().at(-1)).toBe('reconnect');
  } finally {
    await standalone.stop();
  }
});
