import { expect } from '@jest/globals';
import { hashApiKey } from '../../src/core/api-key-hash.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { isRecord } from '../../src/resources/field-tree.ts';
import { type Answer, type FacadeWorld, startFacadeWorld } from '../facade/facade-world.ts';
import { eventually } from '../support/eventually.ts';
import { newEvent } from '../support/new-event.ts';
import { dead, delivered, settleAll, takeFrom } from '../support/queue-worker.ts';
import { type DescribedOperation, describedOperations, list, members, type Schema } from './described-operations.ts';
import { DocumentSchemas } from './document-schemas.ts';

/** A facade that has a rate limit and all features of a plan, filled with what the examples of its own document make. */
export interface ContractWorld {
  readonly facade: FacadeWorld;
  readonly document: Schema;
  readonly operations: readonly DescribedOperation[];
  readonly schemas: DocumentSchemas;
  /** The facade's response to each example request, by operation. */
  readonly examples: ReadonlyMap<string, readonly Answer[]>;
  /** Admin key; the windows of all rate limits restart. */
  newKey(): Promise<string>;
  endRateWindows(): Promise<void>;
  /** Ids of what is there now below a collection's path. */
  idsIn(collection: string, key: string): Promise<string[]>;
  /** Ids of what was there at the last `look`, for a field such as `sourceId`. */
  known(field: string): readonly string[];
  look(): Promise<void>;
}

const organization = 'contract';
/** Name of the event type that the examples make. */
const nameOfExamples = ['order.paid'];

export async function startContractWorld(): Promise<ContractWorld> {
  const facade = await startFacadeWorld();
  await facade.addOrganization(organization, 'business');
  await facade.addOrganization('other', 'business');
  const endRateWindows = async (): Promise<void> => {
    const counters = await facade.redis.client.keys('test:{rate:*');
    if (counters.length > 0) await facade.redis.client.del(counters);
  };
  const newKey = async (): Promise<string> => {
    await endRateWindows();
    return facade.addKey(organization);
  };
  const document = members((await facade.request('GET', '/openapi.json', { key: null })).body);
  const operations = describedOperations(document);
  const exampleCredential = await addKeyOfExample(facade, operations);
  const key = await newKey();
  const idsIn: ContractWorld['idsIn'] = async (collection, own) => {
    // Manifests have no list: they are of what other collections list.
    const listed = collection === '/manifests' ? '/destinations' : collection;
    const { body } = await facade.request('GET', `/api${listed}`, { key: own });
    return Object.values(members(body))
      .flatMap(list)
      .flatMap((item) => (isRecord(item) && typeof item['id'] === 'string' ? [item['id']] : []));
  };
  const names = new Map<string, string[]>();
  const collections = operations.filter(({ method, path }) => method === 'GET' && !path.includes('{')).map(({ path }) => path);
  const look = async (): Promise<void> => {
    for (const collection of collections) names.set(stemOf(collection), await idsIn(collection, key));
  };
  const org = (await facade.store.get('Organization', { name: organization })).status?.id ?? '';
  await deliverSome(facade, org, 'dst_a');
  await facade.startWorker();
  await makeEndpointOfExamples(facade, org);
  const examples = await runExamples(operations, async (operation, body) => {
    const [id = 'none'] = operation.path.includes('{') ? await idsIn(operation.path.slice(0, operation.path.indexOf('/{')), key) : [];
    return facade.request(operation.method, `/api${operation.path.replace('{id}', id)}`, { key, body });
  });
  await look();
  return {
    facade,
    document,
    operations,
    schemas: new DocumentSchemas(document),
    examples,
    newKey,
    endRateWindows,
    idsIn,
    look,
    known: (field) => {
      if (field === 'eventType') return nameOfExamples;
      if (field === 'credential') return [exampleCredential];
      if (field === 'organization') return [organization];
      const stem = /^(.+?)Ids?$/.exec(field)?.[1]?.toLowerCase();
      const fitting = [...names].find(([name]) => {
        const plain = name.replaceAll('-', '');
        return stem !== undefined && (stem.endsWith(plain) || plain === `webhook${stem}`);
      });
      return fitting?.[1] ?? [];
    },
  };
}

/** `/destinations` → `destination`. */
function stemOf(collection: string): string {
  return collection.slice(1).replace(/ies$/, 'y').replace(/s$/, '');
}

/** Sends all example bodies, first those that create; what needs something that another example makes is sent again after it. */
async function runExamples(
  operations: readonly DescribedOperation[],
  send: (operation: DescribedOperation, body: unknown) => Promise<Answer>,
): Promise<Map<string, Answer[]>> {
  const answers = new Map<string, Answer[]>();
  const rank = ({ method, path }: DescribedOperation): number =>
    method === 'POST' && !path.includes('{') ? 0 : method === 'DELETE' ? 2 : 1;
  let open = operations
    .flatMap((operation) => (rank(operation) === 2 ? [] : operation.bodyExamples.map((body) => ({ operation, body }))))
    .sort((one, other) => rank(one.operation) - rank(other.operation));
  for (let before = Number.POSITIVE_INFINITY; open.length > 0 && open.length < before; ) {
    before = open.length;
    const refused: typeof open = [];
    for (const { operation, body } of open) {
      const answer = await send(operation, body);
      if (answer.status >= 400) refused.push({ operation, body });
      answers.set(operation.id, [...(answers.get(operation.id) ?? []).filter(({ status }) => status < 400), answer]);
    }
    open = refused;
  }
  return answers;
}

/** The API key by which the example of a session begins one. */
async function addKeyOfExample({ store, registry }: FacadeWorld, operations: readonly DescribedOperation[]): Promise<string> {
  const [example] = operations.find(({ id }) => id === 'createSession')?.bodyExamples ?? [];
  const key = String(members(example)['credential']);
  const sha256 = hashApiKey(key);
  await store.apply(
    { kind: 'ApiKey', metadata: { name: 'example', namespace: organization }, spec: { sha256, role: 'admin' } },
    { manager: 'kubectl' },
  );
  await eventually(async () => expect(await registry.apiKeyIdByHash(sha256)).not.toBeNull());
  return key;
}

/** The application and the endpoint that the examples name: ids are made by the store. */
async function makeEndpointOfExamples({ webhooks }: FacadeWorld, org: string): Promise<void> {
  const tail = 'mzxw6ytboi4dsnrrgq3tkojqge';
  const { id } = await webhooks.createApplication({ org, id: `app_${tail}`, shard: 0, name: 'Of the examples' });
  const sealSecret = () => ({ sealed: '', prefix: 'whsec_MfKQ', version: 1, previous: [] });
  await webhooks.createEndpoint({ org, id: `ep_${tail}`, applicationId: id, url: 'https://customer.example.com/', sealSecret });
}

/** A dead letter, a delivered message and one that waits. */
async function deliverSome(facade: FacadeWorld, org: string, destination: string): Promise<void> {
  const queue = new RedisDeliveryQueue({ redis: facade.redis.client, prefix: 'test:' });
  await queue.refreshShard('w1', 1000);
  for (const outcome of [dead, delivered, null]) {
    await facade.acceptor.accept(newEvent({ org, destinations: [destination] }));
    if (outcome !== null) await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 64), outcome);
  }
}
