import { z } from 'zod';
import { canonicalJson } from '../../../core/canonical-json.ts';
import { PosthornError } from '../../../core/errors.ts';
import { providersWithoutDeliveryId } from '../../../core/providers/providers.ts';
import { cidr, isCidr } from '../../../resources/cidr.ts';
import { kinds, type SpecInputOf, type SpecOf } from '../../../resources/kinds.ts';
import { settingNotHad } from '../../http/setting-not-had.ts';
import { clearableToSpec } from '../../records/record-fields.ts';
import { shownField, specField } from '../../records/spec-field.ts';
import { type Synonym, sameAs, sentSynonym } from '../../records/synonyms.ts';

/** Intake of a source: addresses, pace and duplicates, as the flat fields of the API. */

type Spec = SpecOf<'Source'>;
type SpecInput = SpecInputOf<'Source'>;

const { ipFilter, dedup, rateLimitPerMinute } = kinds.Source.spec.shape;
const ipSchema = ipFilter.unwrap();
const dedupSchema = dedup.unwrap();
const networks = z.array(cidr.refine(isCidr, 'must be a network such as 10.0.0.0/8 or fd00::/8').meta({ format: 'cidr' })).max(100);

const none = z.array(z.string()).max(0).nullable();
const notHad = {
  encryptFields: settingNotHad(none, 'Nothing but an empty list: Posthorn seals secrets, not fields of payloads.'),
  maskFields: settingNotHad(none, 'Nothing but an empty list: Posthorn masks no fields of payloads.'),
  transientMode: settingNotHad(z.literal(false), 'Nothing but false: Posthorn stores what it takes.'),
};

export const intakeBody = {
  rateLimitPerMinute: rateLimitPerMinute.unwrap().nullable().optional().describe('Requests that are taken in a minute; null: unlimited.'),
  ipFilterMode: specField(ipSchema.shape.mode),
  ipAllowlist: networks.optional().describe('Networks that may send, as CIDR.'),
  ipDenylist: networks.optional().describe('Networks that may not send, as CIDR.'),
  dedupStrategy: specField(dedupSchema.shape.strategy),
  dedupHeader: dedupSchema.shape.header.unwrap().nullable().optional().describe('Header that contains the id, instead of the usual one.'),
  dedupCustomHeader: sentSynonym(dedupSchema.shape.header.unwrap().nullable(), 'dedupHeader'),
  dedupEnabled: z
    .boolean()
    .optional()
    .meta({ description: 'false: the same as dedupStrategy none; true: another one, auto unless it is sent.', deprecated: true }),
  ...notHad,
  dedupWindowHours: specField(dedupSchema.shape.windowHours),
};

export const intakeRecord = {
  rateLimitPerMinute: z.int().nullable().describe('Requests that are taken in a minute; null: unlimited.'),
  ipFilterMode: shownField(ipSchema.shape.mode),
  ipAllowlist: z.array(z.string()).describe('Networks that may send, as CIDR.'),
  ipDenylist: z.array(z.string()).describe('Networks that may not send, as CIDR.'),
  dedupStrategy: shownField(dedupSchema.shape.strategy),
  dedupHeader: z.string().nullable().describe('Header that contains the id; null: the usual one.'),
  dedupCustomHeader: z.string().nullable().describe('The same as dedupHeader.'),
  dedupEnabled: z.boolean().describe('Whether dedupStrategy is another one than none.'),
  dedupWindowHours: shownField(dedupSchema.shape.windowHours),
};

type Strategy = z.output<typeof dedupSchema>['strategy'];

export const intakeSynonyms = {
  dedupCustomHeader: sameAs<'Source', string | null>('dedupHeader', ({ spec }) => intakeToRecord(spec).dedupHeader),
  dedupEnabled: {
    of: 'dedupStrategy',
    shownFor: (strategy) => strategy !== 'none',
    meant: (isOn, strategy) => (isOn ? (strategy === undefined || strategy === 'none' ? 'auto' : strategy) : 'none'),
    current: ({ spec }) => intakeToRecord(spec).dedupStrategy,
    decides: true,
  } satisfies Synonym<'Source', boolean, Strategy>,
};

const intakeBodySchema = z.object(intakeBody);
const intakeRecordSchema = z.object(intakeRecord);

export function intakeToRecord(spec: Pick<Spec, 'rateLimitPerMinute' | 'ipFilter' | 'dedup'>): z.input<typeof intakeRecordSchema> {
  const { strategy, header, windowHours } = spec.dedup ?? dedupSchema.parse({});
  return {
    rateLimitPerMinute: spec.rateLimitPerMinute ?? null,
    ipFilterMode: spec.ipFilter?.mode ?? 'none',
    ipAllowlist: spec.ipFilter?.allowlist ?? [],
    ipDenylist: spec.ipFilter?.denylist ?? [],
    dedupStrategy: strategy,
    dedupHeader: header ?? null,
    dedupCustomHeader: header ?? null,
    dedupEnabled: strategy !== 'none',
    dedupWindowHours: windowHours,
  };
}

/** VALIDATION_FAILED for an allowlist that admits no address, and for a delivery id without a location. */
export function intakeToSpec(
  sent: z.output<typeof intakeBodySchema>,
  current: Spec | undefined,
  provider: Spec['provider'],
): Pick<SpecInput, 'rateLimitPerMinute' | 'ipFilter' | 'dedup'> {
  return {
    rateLimitPerMinute: clearableToSpec(sent.rateLimitPerMinute, current?.rateLimitPerMinute),
    ipFilter: ipFilterToSpec(sent, current),
    dedup: dedupToSpec(sent, current, provider),
  };
}

function ipFilterToSpec(sent: z.output<typeof intakeBodySchema>, current: Spec | undefined): SpecInput['ipFilter'] {
  const before = intakeToRecord(current ?? {});
  const mode = sent.ipFilterMode ?? before.ipFilterMode;
  const allowlist = sent.ipAllowlist ?? before.ipAllowlist;
  const denylist = sent.ipDenylist ?? before.ipDenylist;
  if ((mode === 'allowlist' || mode === 'both') && allowlist.length === 0)
    throw new PosthornError('VALIDATION_FAILED', `ipAllowlist must name a network with ipFilterMode ${mode}.`);
  const shown = [before.ipFilterMode, before.ipAllowlist, before.ipDenylist];
  return canonicalJson([mode, allowlist, denylist]) === canonicalJson(shown) ? current?.ipFilter : { mode, allowlist, denylist };
}

function dedupToSpec(sent: z.output<typeof intakeBodySchema>, current: Spec | undefined, provider: Spec['provider']): SpecInput['dedup'] {
  const before = intakeToRecord(current ?? {});
  const strategy = sent.dedupStrategy ?? before.dedupStrategy;
  const header = sent.dedupHeader === undefined ? before.dedupHeader : sent.dedupHeader;
  const windowHours = sent.dedupWindowHours ?? before.dedupWindowHours;
  if (strategy === 'provider_id' && header === null && providersWithoutDeliveryId.includes(provider))
    throw new PosthornError('VALIDATION_FAILED', `dedupHeader is required with dedupStrategy provider_id and provider ${provider}.`);
  const shown = [before.dedupStrategy, before.dedupHeader, before.dedupWindowHours];
  if (canonicalJson([strategy, header, windowHours]) === canonicalJson(shown)) return current?.dedup;
  return { strategy, header: header ?? undefined, windowHours };
}
