import { z } from 'zod';
import { withJitter } from '../core/backoff.ts';
import { group, version } from '../resources/definition.ts';
import { kinds, posthornKinds } from '../resources/kinds.ts';
import type { KubernetesApi } from '../store/kubernetes/kubernetes-api.ts';
import { readinessReporter } from './readiness-reporter.ts';
import type { RoleContext } from './role-process.ts';

const lookMs = 300_000;
const lookAgainMs = 10_000;
/** Most fields of one kind that a message names. */
const maxNamed = 5;

interface Schema {
  properties?: Record<string, Schema> | undefined;
  items?: Schema | undefined;
  additionalProperties?: Schema | boolean | undefined;
}

const document = z.object({
  components: z.object({
    schemas: z.record(
      z.string(),
      z.looseObject({
        'x-kubernetes-group-version-kind': z.array(z.object({ group: z.string(), version: z.string(), kind: z.string() })).optional(),
      }),
    ),
  }),
});

/**
 * Compares the kinds that the API server has with those of this release until the process stops. The API server drops fields that its
 * CustomResourceDefinitions lack without a word, so a controller with earlier ones is not ready.
 */
export async function checkCrds(api: KubernetesApi, { clock, logger, readiness, stopping }: RoleContext): Promise<void> {
  const report = readinessReporter(
    { logger, readiness },
    { check: 'crds', message: 'the CustomResourceDefinitions are of an earlier release' },
  );
  let isCurrent = true;
  while (!stopping.aborted) {
    try {
      const complaints = await crdComplaints(api);
      isCurrent = complaints.length === 0;
      report(isCurrent ? null : complaints.join('; '));
    } catch (error) {
      // The caches report that the API server does not answer.
      logger.debug({ err: error }, 'the kinds of the API server cannot be read');
    }
    await clock.sleep(withJitter(isCurrent ? lookMs : lookAgainMs), stopping);
  }
}

/** What the API server lacks of each kind. Rejects when it does not answer. */
export async function crdComplaints(api: Pick<KubernetesApi, 'request'>): Promise<string[]> {
  const { objectSchemaOf } = await import('../resources/custom-resource-definitions.ts');
  const { components } = document.parse(await api.request('GET', `/openapi/v3/apis/${group}/${version}`));
  const present = new Map(
    Object.values(components.schemas).flatMap((schema) =>
      (schema['x-kubernetes-group-version-kind'] ?? []).map((known) => [`${known.group} ${known.kind}`, schema as Schema]),
    ),
  );
  return posthornKinds.flatMap((kind) => {
    const name = `${kinds[kind].plural}.${group}`;
    const found = present.get(`${group} ${kind}`);
    if (found === undefined) return [`the CustomResourceDefinition ${name} is missing`];
    const lacking = [...fieldsLacking(objectSchemaOf(kind), found, '')];
    if (lacking.length === 0) return [];
    const more = lacking.length > maxNamed ? ` and ${lacking.length - maxNamed} more` : '';
    return [`the CustomResourceDefinition ${name} lacks ${lacking.slice(0, maxNamed).join(', ')}${more}`];
  });
}

/** Paths of the fields of `wanted` that `present` does not have; of a field that is missing, without those below it. */
function* fieldsLacking(wanted: Schema, present: Schema, path: string): Generator<string> {
  for (const [name, schema] of Object.entries(wanted.properties ?? {})) {
    const found = present.properties?.[name];
    if (found !== undefined) yield* fieldsLacking(schema, found, `${path}${name}.`);
    else if (path !== 'metadata.') yield `${path}${name}`;
  }
  if (wanted.items !== undefined) yield* fieldsLacking(wanted.items, present.items ?? {}, `${path}[].`);
  const { additionalProperties: values } = wanted;
  if (typeof values !== 'object') return;
  yield* fieldsLacking(values, typeof present.additionalProperties === 'object' ? present.additionalProperties : {}, `${path}*.`);
}
