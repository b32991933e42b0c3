import { randomBytes } from 'node:crypto';
import { partiallyInForce } from '../../controllers/conditions.ts';
import { RefusedAddresses } from '../../core/egress-policy.ts';
import { Keyring } from '../../core/sealing.ts';
import { admit } from '../../resources/admission.ts';
import {
  type ConfigurationKind,
  type Kind,
  kindPath,
  type PosthornKind,
  type PosthornObject,
  posthornKinds,
} from '../../resources/kinds.ts';
import type { Condition } from '../../resources/metadata.ts';
import { namespaceOf } from '../../resources/references.ts';
import { systemClock } from '../../runtime/clock.ts';
import { ManifestApplier } from '../../runtime/manifests/apply.ts';
import { MemoryStore } from '../../store/memory/memory-store.ts';
import type { ApplyObject, Key } from '../../store/store.ts';
import type { Config } from '../config.ts';
import { judgedOffline } from './judged-offline.ts';
import { type FoundObject, readFiles } from './read-files.ts';

export interface LintOptions {
  /** Files and directories; `-`: the standard input. */
  paths: readonly string[];
  /** Of objects that name none. */
  namespace: string;
  output: 'text' | 'json';
  /** The files are a part of what the cluster has: an object that they refer to and do not hold is no error. */
  isPartial: boolean;
}

/** Something that is wrong with a manifest, or that cannot be judged without the cluster. */
export interface LintFinding {
  severity: 'error' | 'warning';
  file: string;
  /** Absent: the document could not be read. */
  kind?: string;
  namespace?: string;
  name?: string;
  /** Path of the field, such as `spec.http.url`; absent: the object as a whole. */
  field?: string;
  /** CamelCase: of the condition in a cluster; `Invalid` where the API server would refuse the object; `Unreadable`, `Duplicate`. */
  reason: string;
  message: string;
}

/** What only the cluster knows: Secrets that others make, and the keys that sealed values open with. */
const unknownOffline: ReadonlySet<string> = new Set(['SecretNotFound', 'SecretNotReadable']);
/** What other files may hold, those of another organization too. */
const missingObject = /(?<!Key)NotFound$|^RefNotPermitted$/;
/** What another object is, which has a finding of its own, or none where it is fine. */
const ofAnother = /(NotReady|NotProgrammed)$/;

/**
 * Judges manifests as a cluster that has nothing else would, and writes what is wrong, a line each, or one JSON object. Returns the exit code: 0 when
 * there is no error, 1 when there is one. Throws INVALID_CONFIG for a path that cannot be read.
 */
export async function lint(config: Config, options: LintOptions, write: (line: string) => void): Promise<number> {
  const { objects, errors } = await readFiles(options.paths, options.namespace);
  const { unique, duplicates } = withoutDuplicates(objects);
  const admissions = unique.map((found) => ({ found, refusals: refusalsOf(found) }));
  const admitted = admissions.flatMap(({ found, refusals }) => (refusals.length === 0 ? [found] : []));
  const findings: LintFinding[] = [
    ...errors.map(({ file, message }): LintFinding => ({ severity: 'error', file, reason: 'Unreadable', message })),
    ...duplicates,
    ...admissions.flatMap(({ refusals }) => refusals),
    ...(await judged(admitted, config, options)),
  ];
  const count = (severity: LintFinding['severity']): number => findings.filter((finding) => finding.severity === severity).length;
  const totals = { objects: objects.length, errors: count('error'), warnings: count('warning') };
  if (options.output === 'json') write(JSON.stringify({ ...totals, findings }, null, 2));
  else {
    for (const finding of findings) write(lineOf(finding));
    write(`${counted(totals.objects, 'object')}: ${counted(totals.errors, 'error')}, ${counted(totals.warnings, 'warning')}`);
  }
  return totals.errors > 0 ? 1 : 0;
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

function lineOf({ severity, file, kind, namespace, name, field, reason, message }: LintFinding): string {
  const object = kind === undefined ? '' : ` ${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}:`;
  return `${file}: ${severity}:${object} ${reason}: ${field === undefined ? '' : `${field}: `}${message}`;
}

function withoutDuplicates(objects: readonly FoundObject[]): { unique: FoundObject[]; duplicates: LintFinding[] } {
  const first = new Map<string, FoundObject>();
  const duplicates: LintFinding[] = [];
  for (const found of objects) {
    const id = idOf(found.object.kind, found.object.metadata);
    const other = first.get(id);
    if (other === undefined) first.set(id, found);
    else duplicates.push({ severity: 'error', ...where(found), reason: 'Duplicate', message: `the object is in ${other.file}, too` });
  }
  return { unique: [...first.values()], duplicates };
}

/** What the API server would refuse. */
function refusalsOf(found: FoundObject): LintFinding[] {
  const { causes = [] } = admit(found.object.kind, found.object);
  return causes.map(({ field, message }) => ({
    severity: 'error',
    ...where(found),
    ...(field !== '' && { field }),
    reason: 'Invalid',
    message,
  }));
}

/** What the controllers would say of the objects that the API server takes. */
async function judged(found: readonly FoundObject[], config: Config, { isPartial }: LintOptions): Promise<LintFinding[]> {
  const store = new MemoryStore(systemClock);
  const assumed = assumedOrganizations(found.map(({ object }) => object));
  const objects = [...assumed, ...found.map(({ object }) => object)].filter(({ kind }) => kind !== 'DeliveryPool');
  const namespaces = new Set(objects.flatMap(({ metadata }) => (metadata.namespace === undefined ? [] : [metadata.namespace])));
  const made = [...namespaces].map((name): ApplyObject => ({ kind: 'Namespace', metadata: { name } }));
  const given = objects.filter((object) => object.kind !== 'Namespace' || !namespaces.has(object.metadata.name));
  const failures = await new ManifestApplier(store, { protectedManager: 'lint' }).apply([...made, ...given]);
  const results = await judgedOffline(store, {
    keyring: new Keyring(config.encryptionKeys.length > 0 ? config.encryptionKeys : [{ id: 'lint', key: randomBytes(32) }]),
    reach: { egress: config.egress, endpoints: config.warehouse.endpoints, refused: new RefusedAddresses() },
    allowsPlatformIdentity: config.warehouse.allowsPlatformIdentity,
    mailDomains: config.mailDomains,
    requiresSecretConsent: config.requiresSecretConsent,
    allowsInsecureUrls: config.webhooks.allowsInsecureUrls,
    // Files are linted where the address of the installation is not known.
    hasPublicUrl: true,
  });
  const findingsOf = new Map(results.map((object) => [idOf(object.kind, object.metadata), conditionFindings(object, isPartial)]));
  const failureOf = new Map(failures.map(({ object, message }) => [idOf(object.kind, object.metadata), message]));
  return found.flatMap((each): LintFinding[] => {
    const id = idOf(each.object.kind, each.object.metadata);
    const failure = failureOf.get(id);
    if (failure !== undefined) return [{ severity: 'error', ...where(each), reason: 'Invalid', message: failure }];
    return (findingsOf.get(id) ?? []).map((finding) => ({ ...finding, ...where(each) }));
  });
}

/** An organization for each namespace that no Organization of the files names: in the cluster it is there already. */
function assumedOrganizations(objects: readonly ApplyObject[]): ApplyObject[] {
  const isOurs = (kind: Kind): kind is PosthornKind => posthornKinds.some((each) => each === kind);
  const organizations = objects.filter(({ kind }) => kind === 'Organization');
  const named = new Set(organizations.map((object) => namespaceOf(object as PosthornObject<'Organization'>)));
  const taken = new Set(organizations.map(({ metadata }) => metadata.name));
  const used = objects.filter(({ kind }) => isOurs(kind) && kindPath(kind).namespaced).map(({ metadata }) => metadata.namespace ?? '');
  return [...new Set(used)]
    .filter((namespace) => !named.has(namespace))
    .map((namespace) => ({
      kind: 'Organization',
      metadata: { name: taken.has(namespace) ? `${namespace}-assumed` : namespace },
      spec: { namespace, plan: 'enterprise' },
    }));
}

type ConditionFinding = Pick<LintFinding, 'severity' | 'reason' | 'message'>;

function conditionFindings({ kind, status }: PosthornObject<ConfigurationKind>, isPartial: boolean): ConditionFinding[] {
  const conditions: readonly Condition[] = status?.conditions ?? [];
  const ready = conditions.find(({ type }) => type === 'Ready');
  if (ready === undefined) return [{ severity: 'error', reason: 'NotJudged', message: `the ${kind} was not judged` }];
  const findings: ConditionFinding[] = [];
  if (ready.status !== 'True') {
    const isUnknown = unknownOffline.has(ready.reason) || ofAnother.test(ready.reason) || (isPartial && missingObject.test(ready.reason));
    findings.push({ severity: isUnknown ? 'warning' : 'error', reason: ready.reason, message: ready.message });
  } else if (ready.reason === partiallyInForce) findings.push({ severity: 'warning', reason: ready.reason, message: ready.message });
  const advice = conditions.filter(({ type, status: value }) => type === 'CredentialInClear' && value === 'True');
  return [...findings, ...advice.map(({ type, message }): ConditionFinding => ({ severity: 'warning', reason: type, message }))];
}

function where({ file, object: { kind, metadata } }: FoundObject): Pick<LintFinding, 'file' | 'kind' | 'namespace' | 'name'> {
  return { file, kind, ...(metadata.namespace !== undefined && { namespace: metadata.namespace }), name: metadata.name };
}

function idOf(kind: Kind, { namespace, name }: Key): string {
  return `${kind} ${namespace ?? ''}/${name}`;
}
