import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { z } from 'zod';
import { version } from '../../src/cmd/version.ts';

const system = 'posthorn-system';
const accountPrefix = `system:serviceaccount:${system}:`;
const bindings: ReadonlySet<string> = new Set(['rolebindings', 'clusterrolebindings']);

const auditEvent = z.looseObject({
  requestReceivedTimestamp: z.string(),
  verb: z.string(),
  requestURI: z.string(),
  user: z.looseObject({ username: z.string() }),
  userAgent: z.string().optional(),
  objectRef: z
    .looseObject({
      resource: z.string().optional(),
      subresource: z.string().optional(),
      apiGroup: z.string().optional(),
      namespace: z.string().optional(),
      name: z.string().optional(),
    })
    .optional(),
  responseStatus: z.looseObject({ code: z.int(), message: z.string().optional() }).optional(),
  annotations: z.looseObject({ 'authorization.k8s.io/reason': z.string().optional() }).optional(),
});
type AuditEvent = z.output<typeof auditEvent>;

/** The controller binds these roles in the namespace of each organization. */
export const organizationRole = /-organization-(api|controller)$/;
/** Where rights are by such a binding, whatever the namespace. */
export const organizationNamespaces = 'namespaces of organizations';
/** A binding counts a moment after it is made. */
const boundAfterMs = 5000;

/** What admission refuses whatever one's rights are: in a namespace that is going, or beyond a quota. */
const refusedByAdmission = /because it is being terminated|exceeded quota|status unknown for quota/;

export interface Permission {
  /** Name of the service account. */
  account: string;
  verb: string;
  group: string;
  /** With its subresource. */
  resource: string;
  /** Where it is granted for this object alone. */
  name?: string;
  /** Namespace of the RoleBinding that grants it; undefined: a ClusterRoleBinding does. */
  namespace?: string;
}

/** Names a permission as `AuditedRequest` does: `posthorn-controller patch resourcequotas posthorn`, `posthorn-controller list pods in posthorn-system`. */
export function nameOf({ account, verb, group, resource, name, namespace }: Permission): string {
  const what = `${account} ${verb} ${resource}${group === '' ? '' : `.${group}`}${name === undefined ? '' : ` ${name}`}`;
  return namespace === undefined ? what : `${what} in ${namespace}`;
}

export interface AuditedRequest {
  /**
   * Permissions, each with the name of the object and without it. Requests that were refused are left out, those of other programs,
   * and those by a ClusterRoleBinding for what is in the namespace of the installation: a RoleBinding would do for them.
   */
  readonly used: ReadonlySet<string>;
  /** Requests that were refused for lack of rights. */
  readonly forbidden: readonly string[];
}

/** Requests of the service accounts of the installation to the API server, by its audit log. */
export class AuditLog {
  readonly #file: string;
  readonly #used = new Set<string>();
  readonly #forbidden: string[] = [];
  /** `rolebindings posthorn-api`. Helm removes these on uninstall while pods that had them still run. */
  readonly #deletedBindings = new Set<string>();
  /** Since when the bindings of an organization's namespace are there, by namespace and name. */
  readonly #boundSinceMs = new Map<string, number>();
  #readBytes = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** All until now; only what has come since the last time is read. */
  read(): AuditedRequest {
    const added = bytesFrom(this.#file, this.#readBytes);
    // The last line may be half written.
    const whole = added.subarray(0, added.lastIndexOf('\n') + 1);
    this.#readBytes += whole.length;
    for (const line of whole.toString('utf8').split('\n')) if (line !== '') this.#take(auditEvent.parse(JSON.parse(line)));
    return { used: this.#used, forbidden: this.#forbidden };
  }

  #take(event: AuditEvent): void {
    const { verb, requestURI, user, objectRef: { resource = '' } = {}, responseStatus: { code = 0, message = '' } = {} } = event;
    if (resource === 'rolebindings' && code >= 200 && code < 300) this.#takeBinding(event);
    if (user.username.startsWith(accountPrefix)) {
      const account = user.username.slice(accountPrefix.length);
      if (code !== 403) this.#takeUse(account, event);
      else if (!this.#hasLostBinding(account) && !this.#waitsForRights(account, event) && !refusedByAdmission.test(message))
        this.#forbidden.push(`${account} ${verb} ${requestURI}: ${message}`);
    } else if (bindings.has(resource)) this.#takeBindingOfChart(event);
  }

  #takeBindingOfChart({ verb, objectRef: { resource, name } = {}, responseStatus: { code } = { code: 0 } }: AuditEvent): void {
    // When it has begun to go, but not before it is there.
    if (verb === 'delete' && code < 300) this.#deletedBindings.add(`${resource} ${name}`);
    else if (code >= 200 && code < 300) this.#deletedBindings.delete(`${resource} ${name}`);
  }

  #takeBinding({ requestReceivedTimestamp, verb, objectRef: { namespace = '', name } = {} }: AuditEvent): void {
    if (verb === 'deletecollection') {
      for (const id of this.#boundSinceMs.keys()) if (id.startsWith(`${namespace} `)) this.#boundSinceMs.delete(id);
    }
    if (name === undefined || !organizationRole.test(name)) return;
    const id = `${namespace} ${name}`;
    if (verb === 'delete') this.#boundSinceMs.delete(id);
    else if ((verb === 'patch' || verb === 'create') && !this.#boundSinceMs.has(id))
      this.#boundSinceMs.set(id, Date.parse(requestReceivedTimestamp));
  }

  /** Whether it requests Secrets where its right on them is not granted yet, or not any more: it retries. */
  #waitsForRights(account: string, { requestReceivedTimestamp, objectRef: { resource, namespace = '' } = {} }: AuditEvent): boolean {
    if (resource !== 'secrets' || namespace === system) return false;
    const sinceMs = this.#boundSinceMs.get(`${namespace} ${organizationRoleOf(account)}`);
    return sinceMs === undefined || Date.parse(requestReceivedTimestamp) < sinceMs + boundAfterMs;
  }

  /** The chart names bindings for the service accounts. */
  #hasLostBinding(account: string): boolean {
    return [...bindings].some((resource) => this.#deletedBindings.has(`${resource} ${account}`));
  }

  #takeUse(account: string, { verb, userAgent, objectRef = {}, responseStatus, annotations }: AuditEvent): void {
    const { resource, subresource, apiGroup: group = '', namespace, name } = objectRef;
    if (resource === undefined || userAgent !== `posthorn/${version}`) return;
    // The API server evaluates ClusterRoleBindings first.
    const reason = annotations?.['authorization.k8s.io/reason'] ?? '';
    const isByRole = /allowed by RoleBinding/.test(reason);
    const isOfOrganization = isByRole && organizationRole.test(/ of ClusterRole "([^"]+)"/.exec(reason)?.[1] ?? '');
    if (!isByRole && namespace === system) return;
    const asked = {
      account,
      group,
      resource: subresource === undefined ? resource : `${resource}/${subresource}`,
      ...(isByRole && namespace !== undefined && { namespace: isOfOrganization ? organizationNamespaces : namespace }),
    };
    this.#used.add(nameOf({ ...asked, verb }));
    // The object of a POST has no name yet when the rights are checked.
    if (name !== undefined && verb !== 'create') this.#used.add(nameOf({ ...asked, verb, name }));
    // An apply that makes the object needs both.
    if (verb === 'patch' && responseStatus?.code === 201) {
      this.#used.add(nameOf({ ...asked, verb: 'create' }));
      if (name !== undefined) this.#used.add(nameOf({ ...asked, verb: 'create', name }));
    }
  }
}

/** Name of the ClusterRole that the account has in the namespaces of organizations. */
function organizationRoleOf(account: string): string {
  return account.replace(/-(api|controller)$/, '-organization-$1');
}

function bytesFrom(file: string, start: number): Buffer {
  const descriptor = openSync(file, 'r');
  try {
    const bytes = Buffer.alloc(fstatSync(descriptor).size - start);
    return bytes.subarray(0, readSync(descriptor, bytes, 0, bytes.length, start));
  } finally {
    closeSync(descriptor);
  }
}
