import type { PosthornObject } from '../../resources/kinds.ts';

type Pool = Pick<PosthornObject<'DeliveryPool'>, 'metadata'>;

/** On everything that belongs to a pool: the pool's name. */
export const poolLabel = 'posthorn.dev/delivery-pool';

/** The name of every object of a pool. */
export function poolObjectName({ metadata }: Pool): string {
  return `posthorn-delivery-${metadata.name}`;
}

/** Selector of the pods of a pool; a Deployment's cannot be changed. */
export function selectorLabels({ metadata }: Pool): Record<string, string> {
  return { 'app.kubernetes.io/name': 'posthorn', 'app.kubernetes.io/component': 'delivery', [poolLabel]: metadata.name };
}

export function poolLabels(pool: Pool): Record<string, string> {
  return { ...selectorLabels(pool), 'app.kubernetes.io/managed-by': 'posthorn-controller' };
}

/** `selectorLabels` as a query has them. */
export function poolSelector(pool: Pool): string {
  return Object.entries(selectorLabels(pool))
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}
