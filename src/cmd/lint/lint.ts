import { randomBytes } from 'node:crypto';
import { partiallyInForce } from '../../controllers/conditions.ts';
import { RefusedAddresses } from '../../core/egress-policy.ts';
import { Keyring } from '../../core/sealing.ts';
import { admit } from '../../resources/admission.ts';
import type { Cause } from '../../resources/causes.ts';
import { isRecord } from '../../resources/field-tree.ts';
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
import { ManifestApplier } from '../../runtime/manifests/apply.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { MemoryStore } from '../../store/memory/memory-store.ts';
import type { ApplyObject, Key } from '../../store/store.ts';
import type { Config } from '../config.ts';
import { fieldOf } from './field-of.ts';
import type { LintFinding } from './finding.ts';
import { type FoundObject, readFiles } from './read-files.ts';
import { reconcileOffline } from './reconcile-offline.ts';
import { withoutEffect } from './without-effect.ts';

export interface LintOptions {
  /** Files and directories; `-`: the standard input. */
  paths: readonly string[];
  /** Namespace of objects that name none. */
  namespace: string;
  output: 'text' | 'json';
  /** The files are a part of what the cluster has: an object that they refer to and do not hold is no error. */
  isPartial: boolean;
}

/** Known only in the cluster: Secrets that others make, and the keys that sealed values open with. */
const unknownOffline: ReadonlySet<string> = new Set(['SecretNotFound', 'SecretNotReadable']);
/** Missing objects that other files or organizations may hold. */
const missingObject = /(?<!Key)NotFound$|^RefNotPermitted$/;
/** What another object is, which has a finding of its own, or none where it is fine. */
const ofAnother = /(NotReady|NotProgrammed)$/;

/**
 * Checks manifests as an otherwise empty cluster would, and writes findings, a line each, or one JSON object. Returns the exit code: 0 when
 * there is no error, 1 when there is one. Throws INVALID_CONFIG for a path that cannot be read.
 */
export async function lint(config: Config, options: LintOptions, write: (line: string) => void): Promise<number> {
  const { files, objects, findings: ofFiles } = await readFiles(options.paths, options.namespace);
  const { unique, duplicates } = withoutDuplicates(objects);
  const admissions = unique.map(admission);
  const admitted = admissions.flatMap(({ found, isAdmitted }) => (isAdmitted ? [found] : []));
  const findings = inOrder(files, [
    ...ofFiles,
    ...duplicates,
    ...admissions.flatMap((each) => each.findings),
    ...(await statusFindings(admitted, config, options)),
  ]);
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

/** By file as they were given, and by position. */
function inOrder(files: readonly string[], findings: readonly LintFinding[]): LintFinding[] {
  const numbers = new Map(files.map((file, index) => [file, index]));
  const numberOf = ({ file }: LintFinding): number => numbers.get(file) ?? 0;
  return findings.toSorted((a, b) => numberOf(a) - numberOf(b) || a.line - b.line || a.column - b.column);
}

function lineOf({ severity, file, line, column, kind, namespace, name, field, reason, message }: LintFinding): string {
  const object = kind === undefined ? '' : ` ${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}:`;
  const path = field === undefined || message.includes(field) ? '' : `${field}: `;
  return `${file}:${line}:${column}: ${severity}:${object} ${reason}: ${path}${message}`;
}

function withoutDuplicates(objects: readonly FoundObject[]): { unique: FoundObject[]; duplicates: LintFinding[] } {
  const first = new Map<string, FoundObject>();
  const duplicates: LintFinding[] = [];
  for (const found of objects) {
    const id = idOf(found.object.kind, found.object.metadata);
    const other = first.get(id);
    if (other === undefined) first.set(id, found);
    else {
      const { line } = other.placeOf('');
      duplicates.push({ severity: 'error', ...where(found), reason: 'Duplicate', message: `the object is in ${other.file}:${line}, too` });
    }
  }
  return { unique: [...first.values()], duplicates };
}

interface JudgedAlone {
  found: FoundObject;
  isAdmitted: boolean;
  findings: LintFinding[];
}

/** Findings of what the API server would refuse. An object that it accepts has findings of fields without effect instead. */
function admission(found: FoundObject): JudgedAlone {
  const { object, causes } = admit(found.object.kind, asSent(found));
  const told = (severity: LintFinding['severity'], reason: string, { field, message }: Cause): LintFinding => {
    return { severity, ...where(found, field), reason, message };
  };
  if (causes !== undefined) return { found, isAdmitted: false, findings: causes.map((cause) => told('error', 'Invalid', cause)) };
  const idle = withoutEffect(found.object.kind, 'spec' in object ? object.spec : undefined, found.written);
  return { found, isAdmitted: true, findings: idle.map((cause) => told('warning', 'NoEffect', cause)) };
}

/** The object as written, with the parts that an `ApplyObject` lacks, in the namespace where kubectl would put it. */
function asSent({ object, written }: FoundObject): unknown {
  return isRecord(written)
    ? { ...written, metadata: { ...(isRecord(written['metadata']) && written['metadata']), ...object.metadata } }
    : object;
}

/** Conditions of the controllers on the objects that the API server accepts. */
async function statusFindings(found: readonly FoundObject[], config: Config, { isPartial }: LintOptions): Promise<LintFinding[]> {
  const store = new MemoryStore(systemClock);
  const assumed = assumedOrganizations(found.map(({ object }) => object));
  const objects = [...assumed, ...found.map(({ object }) => object)].filter(({ kind }) => kind !== 'DeliveryPool');
  const namespaces = new Set(objects.flatMap(({ metadata }) => (metadata.namespace === undefined ? [] : [metadata.namespace])));
  const made = [...namespaces].map((name): ApplyObject => ({ kind: 'Namespace', metadata: { name } }));
  const given = objects.filter((object) => object.kind !== 'Namespace' || !namespaces.has(object.metadata.name));
  const failures = await new ManifestApplier(store, { protectedManager: 'lint' }).apply([...made, ...given]);
  const results = await reconcileOffline(store, {
    keyring: new Keyring(config.encryptionKeys.length > 0 ? config.encryptionKeys : [{ id: 'lint', key: randomBytes(32) }]),
    rules: { egress: config.egress, endpoints: config.warehouse.endpoints, refused: new RefusedAddresses() },
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
    return (findingsOf.get(id) ?? []).map(({ severity, field, ...told }) => ({ severity, ...where(each, field), ...told }));
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

type ConditionFinding = Pick<LintFinding, 'severity' | 'reason' | 'message'> & { field?: string };

function conditionFindings(object: PosthornObject<ConfigurationKind>, isPartial: boolean): ConditionFinding[] {
  const { kind, status } = object;
  const conditions: readonly Condition[] = status?.conditions ?? [];
  const ready = conditions.find(({ type }) => type === 'Ready');
  if (ready === undefined) return [{ severity: 'error', reason: 'NotJudged', message: `the ${kind} was not checked` }];
  const told = (severity: LintFinding['severity'], reason: string, message: string): ConditionFinding => {
    const field = fieldOf(object, reason, message);
    return { severity, ...(field !== undefined && { field }), reason, message };
  };
  const findings: ConditionFinding[] = [];
  if (ready.status !== 'True') {
    const isUnknown = unknownOffline.has(ready.reason) || ofAnother.test(ready.reason) || (isPartial && missingObject.test(ready.reason));
    findings.push(told(isUnknown ? 'warning' : 'error', ready.reason, ready.message));
  } else if (ready.reason === partiallyInForce) findings.push(told('warning', ready.reason, ready.message));
  const warnings = conditions.filter(({ type, status: value }) => type === 'CredentialInClear' && value === 'True');
  return [...findings, ...warnings.map(({ type, message }) => told('warning', type, message))];
}

type Where = Pick<LintFinding, 'file' | 'line' | 'column' | 'kind' | 'namespace' | 'name' | 'field'>;

/** `field`: absent or empty for the object as a whole. */
function where({ file, object: { kind, metadata }, placeOf }: FoundObject, field = ''): Where {
  const namespace = metadata.namespace !== undefined && { namespace: metadata.namespace };
  return { file, ...placeOf(field), kind, ...namespace, name: metadata.name, ...(field !== '' && { field }) };
}

function idOf(kind: Kind, { namespace, name }: Key): string {
  return `${kind} ${namespace ?? ''}/${name}`;
}
