import { z } from 'zod';
import { randomBase32 } from '../../../core/random.ts';
import { kinds, type PosthornObject, type SpecInputOf } from '../../../resources/kinds.ts';
import type { Call } from '../../http/operation.ts';
import { idOrSlug, newSlug, sentSlug } from '../../records/record-fields.ts';
import { reference } from '../../records/resolved-reference.ts';
import type { SpecInput } from '../../records/resource-family-definition.ts';
import { specField, textOf } from '../../records/spec-field.ts';
import { filterToSpec, replayFilter, shownFilter, shownId } from './replay-filter.ts';

type Replay = PosthornObject<'Replay'>;

const spec = kinds.Replay.spec.shape;
const defaultTtlSeconds = 7 * 86_400;

/** Body of a change. What cannot change may be sent back as it was read. */
export const replayBody = z.strictObject({
  name: sentSlug.optional(),
  slug: sentSlug.optional(),
  what: spec.what.optional(),
  filter: replayFilter.optional(),
  ratePerSecond: specField(spec.ratePerSecond),
  toDestinationId: idOrSlug
    .nullable()
    .optional()
    .describe('Id or slug of a destination to which all of them are sent instead; of deliveries only.'),
  stopAfterFailurePercent: spec.stopAfterFailurePercent.unwrap().nullable().optional().describe(textOf(spec.stopAfterFailurePercent)),
  ttlSecondsAfterFinished: spec.ttlSecondsAfterFinished.unwrap().nullable().optional().meta({
    description: 'Seconds after which the finished replay is deleted; null: never.',
    default: defaultTtlSeconds,
  }),
  dryRun: specField(spec.dryRun),
  suspend: specField(spec.suspend),
  cancel: specField(spec.cancel),
});

export const newReplayBody = replayBody
  .omit({ slug: true, cancel: true })
  .extend({ name: newSlug.optional().describe('Name in paths and in Kubernetes; random when absent.') })
  .required({ what: true });

export const replayDefinition = {
  kind: 'Replay',
  immutable: {
    name: ({ metadata }: Replay) => [metadata.name],
    slug: ({ metadata }: Replay) => [metadata.name],
    ...unchanged(['what', 'filter', 'ratePerSecond', 'toDestinationId', 'stopAfterFailurePercent', 'ttlSecondsAfterFinished', 'dryRun']),
  },
  whyImmutable: 'a replay is immutable but for suspend and cancel',
  toSpec: replayToSpec,
} as const;

function unchanged(fields: readonly (keyof ReturnType<typeof shownSpec>)[]) {
  return Object.fromEntries(fields.map((field) => [field, (object: Replay, call: Call): unknown[] => [shownSpec(object, call)[field]]]));
}

/** The spec as a record has it. */
export function shownSpec({ spec: shown }: Replay, call: Call) {
  const { what, ratePerSecond, destinationRef, stopAfterFailurePercent = null, ttlSecondsAfterFinished = null } = shown;
  const { dryRun, suspend, cancel } = shown;
  return {
    what,
    filter: shownFilter(shown, call),
    ratePerSecond,
    toDestinationId: destinationRef === undefined ? null : shownId(call, 'Destination', destinationRef.name),
    stopAfterFailurePercent,
    ttlSecondsAfterFinished,
    dryRun,
    suspend,
    cancel,
  };
}

/** The slug under which a replay is made. Without a name it is random: an equal spec under a name that was used is not run again. */
export function slugOfReplay({ name }: z.output<typeof newReplayBody>): string {
  return name ?? `replay-${randomBase32(16)}`;
}

async function replayToSpec({ call, body: sent, current }: SpecInput<'Replay', typeof replayBody>): Promise<SpecInputOf<'Replay'>> {
  if (current !== undefined)
    return { ...current.spec, suspend: sent.suspend ?? current.spec.suspend, cancel: sent.cancel ?? current.spec.cancel };
  const { what, filter, ratePerSecond, toDestinationId, stopAfterFailurePercent, ttlSecondsAfterFinished, dryRun, suspend } = sent;
  if (what === undefined) throw new Error('a replay is made of nothing');
  return {
    what,
    filter: await filterToSpec(call, what, filter ?? {}),
    ratePerSecond,
    destinationRef: toDestinationId == null ? undefined : await reference(call, 'Destination', 'toDestinationId', toDestinationId, []),
    stopAfterFailurePercent: stopAfterFailurePercent ?? undefined,
    ttlSecondsAfterFinished: ttlSecondsAfterFinished === undefined ? defaultTtlSeconds : (ttlSecondsAfterFinished ?? undefined),
    dryRun,
    suspend,
  };
}
