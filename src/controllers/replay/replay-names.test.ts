import { expect, test } from '@jest/globals';
import { controllerSuite } from '../../../test/support/controller-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { lenientBy, lenientClock } from '../../../test/support/lenient-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { recordLayoutVersion } from '../../core/records.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { registryKeys } from '../../data/registry/registry-keys.ts';
import { type KnownWebhooks, knownWebhooks } from '../../data/webhooks/known-webhooks.ts';
import type { SpecInputOf } from '../../resources/kinds.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { idOf } from '../held-ids.ts';

const suite = controllerSuite();
const options = { manager: 'test', force: true };

/** An organization whose controllers run; returns its id. */
async function organization(name: string): Promise<string> {
  await suite.store.apply({ kind: 'Organization', metadata: { name }, spec: { namespace: name } }, options);
  await eventually(async () => expect(await ready('Organization', { name })).toBe('True Ready'));
  return idOf('Organization', await suite.store.get('Organization', { name }));
}
const replay = (namespace: string, name: string, filter: SpecInputOf<'Replay'>['filter']) =>
  suite.store.apply({ kind: 'Replay', metadata: { namespace, name }, spec: { what: 'messages', filter } }, options);

async function ready(kind: 'Organization' | 'Replay', key: { namespace?: string; name: string }): Promise<string> {
  const condition = (await suite.store.get(kind, key)).status?.conditions?.find(({ type }) => type === 'Ready');
  return `${condition?.status} ${condition?.reason}`;
}
const becomes = (namespace: string, name: string, expected: string) =>
  eventually(async () => expect(await ready('Replay', { namespace, name })).toBe(expected));

test('messages of another organization make no application and no endpoint known, those of the own organization do', async () => {
  suite.start();
  await organization('acme');
  const other = await organization('other');
  const acceptor = new RedisMessageAcceptor({ redis: suite.redis.client, prefix: suite.prefix, clock: lenientClock });
  await acceptor.accept(newWebhookEvent(other, [{ id: 'ep_gone', applicationId: 'app_gone' }]));
  for (const namespace of ['acme', 'other']) {
    await replay(namespace, 'application', { applicationIds: ['app_gone'] });
    await replay(namespace, 'endpoint', { endpointId: 'ep_gone' });
    // The names of further indexes, which have entries.
    await replay(namespace, 'index', { applicationId: `+${other}` });
  }
  await becomes('acme', 'application', 'False ApplicationNotFound');
  await becomes('acme', 'endpoint', 'False EndpointNotFound');
  await becomes('other', 'application', 'True Ready');
  await becomes('other', 'endpoint', 'True Ready');
  await becomes('other', 'index', 'False ApplicationNotFound');
});

test('a new event type brings back the replays that name it', async () => {
  const { client: redis } = suite.redis;
  const { prefix } = suite;
  const known = knownWebhooks({ redis, prefix, clock: systemClock, logger: silentLogger, shards: () => 1 });
  const asked: string[] = [];
  const noting: KnownWebhooks = {
    ...known,
    deletedEventTypeIds: (org, name) => {
      asked.push(name);
      return known.deletedEventTypeIds(org, name);
    },
  };
  // No object is due for another reconcile.
  suite.start({ clock: lenientBy(100), knownWebhooks: noting });
  await organization('acme');
  await replay('acme', 'several', { eventTypes: ['order.paid', 'order.sent'] });
  await eventually(() => expect(asked).toEqual(expect.arrayContaining(['order.paid', 'order.sent'])));
  const make = (name: string) =>
    suite.store.apply({ kind: 'WebhookEventType', metadata: { namespace: 'acme', name }, spec: { name } }, options);
  await make('order.paid');
  await make('order.sent');
  await becomes('acme', 'several', 'True Ready');
});

test('a replay begins by an event type that only the registry has, of its own organization alone', async () => {
  suite.start();
  const org = await organization('acme');
  await organization('other');
  const epoch = Number(await suite.redis.client.get(registryKeys(suite.prefix).epoch));
  const type = { enabled: true, schema: null, schemaVersion: 0, deprecatedAtMs: null, generation: 1 };
  await suite.controllers.registry.publish(epoch, 'eventType', {
    v: recordLayoutVersion,
    id: 'etp_paid',
    org,
    name: 'order.paid',
    ...type,
  });
  await replay('acme', 'paid', { eventType: 'order.paid' });
  await replay('other', 'paid', { eventType: 'order.paid' });
  await becomes('acme', 'paid', 'True Ready');
  await becomes('other', 'paid', 'False EventTypeNotFound');
});
