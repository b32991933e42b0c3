import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { z } from 'zod';
import { fetchProgrammed } from '../support/api-writes.ts';
import { eventually } from '../support/eventually.ts';
import { anyJson } from '../support/json-texts.ts';
import { type Standalone, startStandalone } from '../support/program.ts';
import { parsedByPython } from '../support/python-json.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';

const run = promisify(execFile);
const withCurl = spawnSync('curl', ['--version']).status === 0 ? describe : describe.skip;

/** How curl sends what it reads from its standard input; `url`: of the source. */
const ways: Readonly<Record<string, (url: URL) => string[]>> = {
  '--json': () => ['--json', '@-'],
  '--data-binary': () => ['--data-binary', '@-'],
  '--data-binary of a type': () => ['--data-binary', '@-', '--header', 'Content-Type: application/vnd.api+json; charset=utf-8'],
  'in chunks': () => ['--request', 'POST', '--upload-file', '-', '--header', 'Content-Type: application/json'],
  'in chunks that wait for 100': () => ['--request', 'POST', '--upload-file', '-', '--header', 'Expect: 100-continue'],
  'over HTTP/1.0': () => ['--http1.0', '--json', '@-'],
  'with an absolute target': ({ host, pathname }) => ['--request-target', `http://${host}${pathname}`, '--json', '@-'],
  'through curl as for a proxy': ({ origin }) => ['--proxy', origin, '--json', '@-'],
};

const answer = z.object({ success: z.literal(true), eventId: z.string() });

withCurl('what curl sends', () => {
  let standalone: Standalone;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    standalone = await startStandalone();
    const [source, asSent, transformed] = await Promise.all([
      api('POST', '/sources', { name: 'curl', dedupStrategy: 'none' }),
      api('POST', '/destinations', { name: 'as sent', url: `${receiver.url}/sent` }),
      api('POST', '/destinations', { name: 'transformed', url: `${receiver.url}/transformed` }),
    ]);
    const transform = await api('POST', '/transforms', { name: 'kept', type: 'jsonata', code: '{"kept": payload}' });
    const route = { sourceId: source.id, name: 'as sent', destinationIds: [asSent.id] };
    await api('POST', '/routes', route);
    await api('POST', '/routes', { ...route, name: 'transformed', destinationIds: [transformed.id], transformId: transform.id });
  }, 120_000);
  afterAll(async () => {
    await standalone?.stop();
    await receiver?.close();
  });

  // biome-ignore lint/suspicious/noExplicitAny: any record
  async function api(method: string, path: string, body?: object): Promise<any> {
    const response = await fetchProgrammed(`${standalone.url}/api${path}`, {
      method,
      headers: { authorization: `Bearer ${standalone.key}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return JSON.parse(text);
  }

  /** Returns the id of the event. */
  async function curl(options: readonly string[], payload: Buffer, url = `${standalone.url}/ingest/default/curl`): Promise<string> {
    const sending = run('curl', ['--silent', '--show-error', '--noproxy', '', ...options, url]);
    sending.child.stdin?.end(payload);
    const { stdout } = await sending;
    return answer.parse(JSON.parse(stdout)).eventId;
  }

  async function arrived(eventId: string, path: string): Promise<Buffer> {
    const isIt = (each: Receiver['requests'][number]): boolean => each.path === path && each.headers['x-posthorn-event-id'] === eventId;
    return (await eventually(`${eventId} at ${path}`, 60_000, () => receiver.requests.find(isIt))).body;
  }

  test.each(Object.entries(ways))('%s: relay, transform and API say what was sent', async (way, optionsOf) => {
    const payloads = [
      Buffer.from('{"id":9007199254740993,"at":19.90,"name":"Müller 🚀"}'),
      ...fc.sample(anyJson, { numRuns: 3, seed: 20_261_129 }),
    ];
    // Under the type of a form, which curl sends by default, what is no object and no list is a form.
    const isForm = way === '--data-binary';
    const options = optionsOf(new URL(`${standalone.url}/ingest/default/curl`));
    for (const payload of payloads) {
      if (isForm && !/^\ufeff?\s*[[{]/.test(String(payload))) continue;
      const eventId = await curl(options, payload);
      expect(await arrived(eventId, '/sent')).toEqual(payload);
      const response = await fetch(`${standalone.url}/api/events/${eventId}`, { headers: { authorization: `Bearer ${standalone.key}` } });
      const shown = /"payload":(.*),"payloadEncoding":"json"/s.exec(await response.text())?.[1] ?? '';
      const { deliveries } = await api('GET', `/events/${eventId}`);
      const others: Record<string, string> = { shown };
      // JSONata refuses what it does not take with a message, and numbers that share a double may have changed with a warning.
      if (deliveries.every((each: { lastErrorMessage: unknown }) => each.lastErrorMessage === null)) {
        const output = (await arrived(eventId, '/transformed')).toString();
        others['transformed'] = output.replace(/^\{"kept":/, '').replace(/\}$/, '');
      }
      expect([String(payload), parsedByPython([[payload, others]])]).toEqual([String(payload), [[]]]);
    }
  });

  test.each<[string, string[], Buffer, object]>([
    ['-d of JSON', ['--data', '@-'], Buffer.from('{"a":1}'), { a: 1 }],
    ['--data-urlencode', ['--data-urlencode', 'name@-'], Buffer.from('Müller & Co'), { name: 'Müller & Co' }],
    ['-F', ['--form', 'name=<-', '--form', 'file=@/dev/null;filename=a.txt'], Buffer.from('Müller'), { name: 'Müller' }],
    ['gzip', ['--data-binary', '@-', '--header', 'Content-Encoding: gzip'], gzipSync('{"a":1.50}'), { a: 1.5 }],
    [
      'Latin-1',
      ['--data-binary', '@-', '--header', 'Content-Type: application/json; charset=latin1'],
      Buffer.from('{"a":"ü"}', 'latin1'),
      { a: 'ü' },
    ],
  ])('%s has its fields', async (_what, options, payload, fields) => {
    const eventId = await curl(options, payload);
    expect(JSON.parse((await arrived(eventId, '/transformed')).toString())).toEqual({ kept: fields });
  });
});
