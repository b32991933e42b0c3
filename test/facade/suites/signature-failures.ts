import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { RedisIntake } from '../../../src/data/intake/intake.ts';
import { SignatureFailureLog } from '../../../src/data/intake/signature-failure-log.ts';
import { createIngestHandler } from '../../../src/ingest/handler.ts';
import { systemClock } from '../../../src/runtime/system-clock.ts';
import type { Sandbox } from '../../../src/sandbox/sandbox.ts';
import { testKeyring } from '../../support/controllers.ts';
import { eventually } from '../../support/eventually.ts';
import { lenientClock } from '../../support/lenient-clock.ts';
import { lenientSandbox } from '../../support/lenient-sandbox.ts';
import { silentLogger } from '../../support/logger.ts';
import { patientServer } from '../../support/patient-server.ts';
import type { Answer, FacadeWorld } from '../facade-world.ts';

/** Why signatures of a source failed, with any store behind the API and ingest beside it. */
export function describeSignatureFailures(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  let sandbox: Sandbox;
  let server: Server;
  let origin: string;
  let signatureFailures: SignatureFailureLog;
  beforeAll(async () => {
    world = await start();
    sandbox = lenientSandbox();
    signatureFailures = new SignatureFailureLog({ redis: world.redis.client, prefix: 'test:', clock: systemClock, logger: silentLogger });
    const handler = createIngestHandler({
      registry: world.registry,
      acceptor: world.acceptor,
      intake: new RedisIntake({ redis: world.redis.client, prefix: 'test:', clock: lenientClock }),
      signatureFailures,
      sandbox,
      keyring: testKeyring,
      clock: lenientClock,
      logger: silentLogger,
      metrics: new Registry(),
    });
    server = patientServer((request, response) => void handler(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    server?.close();
    sandbox?.close();
    await signatureFailures?.close();
    await world?.stop();
  });

  const send = async (slug: string, headers: Record<string, string> = {}): Promise<number> =>
    (
      await fetch(`${origin}/ingest/acme/${slug}`, {
        method: 'POST',
        body: '{"canary":1}',
        headers: { 'user-agent': 'Shop/1', ...headers },
      })
    ).status;
  const failuresOf = (id: string, key?: string): Promise<Answer> =>
    world.request('GET', `/api/sources/${id}/signature-failures`, key === undefined ? {} : { key });
  const source = (body: object): Promise<{ id: string; slug: string }> =>
    world.create('sources', { provider: 'stripe', signingSecret: 'the secret of the endpoint', ...body });

  test('a source without failures reports it, and one that is not there is 404', async () => {
    const { id } = await source({});
    const { status, body } = await failuresOf(id);
    expect([status, body]).toEqual([200, { data: [], requests: 0, since: null }]);
    expect(await failuresOf('src_nothing')).toMatchObject({ status: 404, body: { code: 'RESOURCE_NOT_FOUND' } });
  });

  test('a viewer reads why requests are refused, in words and with what to do, by the id and by the slug', async () => {
    const { id, slug } = await source({});
    const old = Math.floor(lenientClock.now() / 1000) - 4000;
    expect(await send(slug)).toBe(401);
    expect(await send(slug, { 'stripe-signature': `t=${old},v1=${'0'.repeat(64)}` })).toBe(401);
    expect(await send(slug, { 'stripe-signature': `t=${old + 4000},v1=${'0'.repeat(64)}` })).toBe(401);
    expect(await send(slug, { 'stripe-signature': `t=${old + 4000},v1=${'0'.repeat(64)}` })).toBe(401);
    const key = await world.addKey('acme', { role: 'viewer' });
    await eventually(async () => expect((await failuresOf(id, key)).body.requests).toBe(4));
    const { body, text } = await failuresOf(id, key);
    const common = { refused: true, address: '127.0.0.1', userAgent: 'Shop/1' };
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT/);
    expect(body.data).toEqual([
      {
        reason: 'no_secret_matches',
        message: 'No secret of the source makes the signature that was sent.',
        advice: expect.stringMatching(/^The source needs the secret of the endpoint, as it is shown: /),
        header: null,
        secondsBehind: null,
        requests: 2,
        firstAt: time,
        lastAt: time,
        ...common,
      },
      expect.objectContaining({
        reason: 'timestamp_outside_tolerance',
        header: 'stripe-signature',
        message: expect.stringMatching(/^The time that was signed is 40\d\d s old; 300 s are allowed\.$/),
        ...common,
      }),
      expect.objectContaining({ reason: 'header_missing', message: 'The request has no header stripe-signature.', ...common }),
    ]);
    expect(body.since).toBe(body.data[2].firstAt);
    for (const secret of ['canary', '0'.repeat(64), 'the secret of the endpoint.']) expect(text).not.toContain(secret);
    expect((await failuresOf(slug, key)).body).toEqual(body);
  });

  test('a source that accepts invalid signatures shows them as accepted', async () => {
    const { id, slug } = await source({ provider: 'github', rejectInvalidSignatures: false });
    expect(await send(slug)).toBe(200);
    await eventually(async () =>
      expect((await failuresOf(id)).body.data).toMatchObject([{ reason: 'header_missing', header: 'x-hub-signature-256', refused: false }]),
    );
  });

  test('the story of a source reports why signatures failed, with what to do until an event comes', async () => {
    const secret = 'a secret of the repository';
    const { id, slug } = await source({ provider: 'github', signingSecret: secret });
    const destination = await world.create('destinations', { url: 'https://hooks.example.com/in' });
    await world.create('routes', { sourceId: id, destinationIds: [destination.id] });
    const explained = async () => {
      const { story, advice } = (await world.request('GET', `/api/explain/${id}`)).body;
      const said = story.filter(({ what }: { what: string }) => what.startsWith('signature_failure'));
      return { said: said.map(({ text }: { text: string }) => text), advice: advice.map(({ text }: { text: string }) => text) };
    };
    expect(await explained()).toEqual({ said: [], advice: [] });
    expect(await send(slug)).toBe(401);
    expect(await send(slug)).toBe(401);
    const said = [
      '2 requests from 127.0.0.1 were refused. The request has no header x-hub-signature-256.',
      'Requests whose signatures failed: 2.',
    ];
    const advice = [expect.stringMatching(/^Let the sender sign its requests/), 'Read from where and how often signatures fail.'];
    await eventually(async () => expect(await explained()).toEqual({ said, advice }));
    const { advice: told } = (await world.request('GET', `/api/explain/${id}`)).body;
    expect(told[1].command).toContain(`"$URL/api/sources/${id}/signature-failures"`);
    const signature = createHmac('sha256', secret).update('{"canary":1}').digest('hex');
    expect(await send(slug, { 'x-hub-signature-256': `sha256=${signature}` })).toBe(200);
    await eventually(async () => expect(await explained()).toEqual({ said, advice: [] }));
  });

  test('another organization sees nothing of the failures of a source, nor of a source of its own with the same name', async () => {
    const { id, slug } = await source({ slug: 'walled' });
    expect(await send(slug)).toBe(401);
    await eventually(async () => expect((await failuresOf(id)).body.requests).toBe(1));
    await world.addOrganization('other');
    const key = await world.addKey('other');
    expect(await failuresOf(id, key)).toMatchObject({ status: 404, body: { code: 'RESOURCE_NOT_FOUND' } });
    expect((await failuresOf(slug, key)).status).toBe(404);
    await world.create('sources', { slug: 'walled', provider: 'stripe', signingSecret: 'another secret' }, key);
    expect((await failuresOf(slug, key)).body).toEqual({ data: [], requests: 0, since: null });
  });

  test('a source that takes the name of a deleted one begins without failures', async () => {
    const { id, slug } = await source({ slug: 'again' });
    expect(await send(slug)).toBe(401);
    await eventually(async () => expect((await failuresOf(id)).body.requests).toBe(1));
    expect((await world.request('DELETE', `/api/sources/${id}`)).status).toBe(204);
    expect((await failuresOf(slug)).status).toBe(404);
    await source({ slug: 'again' });
    expect((await failuresOf('again')).body).toEqual({ data: [], requests: 0, since: null });
  });
}
