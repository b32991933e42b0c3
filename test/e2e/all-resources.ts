import { z } from 'zod';
import { kubectl } from './kubectl.ts';

const resource = z.looseObject({
  kind: z.string(),
  metadata: z.looseObject({ namespace: z.string().default(''), name: z.string(), uid: z.string(), generation: z.int() }),
  spec: z.unknown(),
});
const list = z.looseObject({ items: z.array(resource) });

/** Fields that only its owner changes of each resource in the cluster. */
export async function allResources(): Promise<Record<string, object>> {
  const { items } = list.parse(JSON.parse(await kubectl(['get', 'posthorn', '--all-namespaces', '-o', 'json'])));
  return Object.fromEntries(
    items.map(({ kind, metadata: { namespace, name, uid, generation }, spec }) => [
      `${kind} ${namespace}/${name}`,
      { uid, generation, spec },
    ]),
  );
}
