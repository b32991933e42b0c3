import type { EventRecorder } from '../controllers/event-recorder.ts';
import type { Clock } from '../core/clock.ts';
import { isPosthornError, PosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { bootstrapManager } from '../resources/installation-managers.ts';
import type { Kind, PosthornKind } from '../resources/kinds.ts';
import type { CacheChange, ResourceCache } from '../store/cache.ts';
import { installationOf } from '../store/served-objects.ts';
import type { ApplyObject, Key, ResourceStore } from '../store/store.ts';
import type { AdminKeySource } from './admin-key-file.ts';
import { type BootstrapSource, bootstrapComplaints, readBootstrap } from './bootstrap-check.ts';
import { applyRequired } from './bootstrap-fields.ts';
import { isReleased } from './bootstrap-release.ts';
import { adminKey as adminKeyObject } from './default-organization.ts';

const firstRetryMs = 250;
const longestRetryMs = 60_000;
const earlyRounds = 2;
/** The files of a ConfigMap change without a restart. */
const recheckMs = 10_000;

/** Notifies of changes of one kind, such as a cache. */
export type Changes = { [K in PosthornKind]: Pick<ResourceCache<K>, 'kind' | 'onChange'> }[PosthornKind];

export interface BootstrapOptions {
  store: Pick<ResourceStore, 'get' | 'apply'>;
  /** YAML manifests; undefined: there are none. */
  source: BootstrapSource | undefined;
  /** Installation of the organizations. The first organization has its name. */
  installation: string;
  /** Admin key of that organization, in whatever namespace that is; null: there is none. */
  adminKey: AdminKeySource | null;
  /** Watches that detect deletions of the objects. */
  changes: readonly Changes[];
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  /** After each round: what could not be applied; null: not known yet. */
  report(complaints: readonly string[] | null): void;
}

/**
 * Applies what an installation must have, over what others have made of it since but for the number of workers, and tries again until all of it is there: the namespace of
 * the admin key, for one, is made by the controllers. What is deleted later is made again, unless `uninstall` has released it, and another admin key
 * replaces the one before. Deletes nothing. Ends when the signal aborts.
 */
export async function bootstrapInstallation(options: BootstrapOptions, signal: AbortSignal): Promise<void> {
  const { clock, logger } = options;
  const bootstrap = new Bootstrap(options);
  const ends = options.changes.map((changes) => bootstrap.follow(changes));
  let last = '';
  for (let failures = 0; !signal.aborted; failures++) {
    const { complaints, waitsFor } = await bootstrap.applyMissing();
    // The first rounds come before the namespace of the admin key is made: not worth a line.
    const isEarly = complaints.length > 0 && failures <= earlyRounds;
    options.report(isEarly ? null : complaints);
    if (!isEarly && complaints.length > 0 && complaints.join() !== last) {
      last = complaints.join();
      logger.warn({ complaints }, 'the bootstrap manifests could not be applied; retrying');
    }
    if (complaints.length === 0 && waitsFor !== null && waitsFor !== last) {
      last = waitsFor;
      logger.info({ waitsFor }, 'the admin key is applied as soon as its organization exists');
    }
    if (complaints.length === 0 && waitsFor === null) {
      failures = 0;
      last = '';
      await bootstrap.somethingIsMissing(signal);
    } else await clock.sleep(Math.min(longestRetryMs, firstRetryMs * 2 ** Math.min(failures, 20)) * (0.8 + Math.random() * 0.4), signal);
  }
  for (const end of ends) end();
}

/** Validates the manifests until they have no errors, or the signal aborts. */
export async function checkBootstrap(
  {
    source,
    clock,
    logger,
    refused,
  }: Pick<BootstrapOptions, 'clock' | 'logger'> & {
    source: BootstrapSource;
    refused(complaints: readonly string[]): void;
  },
  signal: AbortSignal,
): Promise<void> {
  let last = '';
  while (!signal.aborted) {
    const complaints = await bootstrapComplaints(source);
    refused(complaints);
    if (complaints.length === 0) return;
    if (complaints.join() !== last) logger.error({ complaints }, 'the bootstrap manifests are invalid; the controller is not ready');
    last = complaints.join();
    await clock.sleep(recheckMs, signal);
  }
}

class Bootstrap {
  readonly #options: BootstrapOptions;
  /** Objects that were applied and have not been deleted since. */
  readonly #there = new Set<string>();
  /** Objects that were applied and then deleted. */
  readonly #deleted = new Set<string>();
  /** The admin key that was applied last. */
  #adminKey: string | null = null;
  #wake: () => void = () => {};

  constructor(options: BootstrapOptions) {
    this.#options = options;
  }

  follow(changes: Changes): () => void {
    const listen = (key: Key, { before, after }: CacheChange<PosthornKind>): void => {
      if (before === undefined || before.metadata.uid === after?.metadata.uid) return;
      const id = idOf(changes.kind, key);
      if (isReleased(before) || !this.#there.delete(id)) return;
      this.#deleted.add(id);
      this.#wake();
    };
    return changes.onChange(listen);
  }

  /** Resolves once an object that was applied has been deleted, there is another admin key, or the signal aborts. */
  async somethingIsMissing(signal: AbortSignal): Promise<void> {
    if (this.#deleted.size > 0 || signal.aborted) return;
    const { adminKey, clock } = this.#options;
    const { promise, resolve } = Promise.withResolvers<void>();
    const ended = new AbortController();
    this.#wake = resolve;
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (adminKey !== null && this.#adminKey !== null)
      void adminKey.changed(this.#adminKey, clock, AbortSignal.any([signal, ended.signal])).then(resolve);
    await promise;
    ended.abort();
  }

  /** Applies what is not known to be there. Returns failures, and what others have to create first. */
  async applyMissing(): Promise<{ complaints: string[]; waitsFor: string | null }> {
    const { source, adminKey, store } = this.#options;
    const deletedBefore = [...this.#deleted];
    const complaints: string[] = [];
    let makesOrganization = false;
    let waitsFor: string | null = null;
    const attempt = async (what: string, work: () => Promise<unknown>): Promise<void> => {
      try {
        await work();
      } catch (error) {
        complaints.push(complaintOf(what, error));
      }
    };
    if (source !== undefined) {
      await attempt(source.directory, async () => {
        const { objects, errors } = await readBootstrap(source);
        for (const { file, message } of errors) complaints.push(`${file}: ${message}`);
        makesOrganization = errors.length > 0 || objects.some(({ kind }) => kind === 'Organization');
        for (const object of objects) await attempt(`${object.kind} ${object.metadata.name}`, () => this.#applyOne(object));
      });
    }
    if (adminKey !== null)
      await attempt('the admin key', async () => {
        const isApplied = await this.#applyAdminKey(adminKey, store, makesOrganization);
        if (!isApplied) waitsFor = `Organization ${this.#options.installation}`;
      });
    // What this round has not made again is no longer required.
    if (complaints.length === 0) for (const id of deletedBefore) this.#deleted.delete(id);
    return { complaints, waitsFor };
  }

  /** Returns false while there is no organization for the key, and another process is to create it. */
  async #applyAdminKey(source: AdminKeySource, store: BootstrapOptions['store'], makesOrganization: boolean): Promise<boolean> {
    const key = source.read();
    const { installation } = this.#options;
    const organization = await store.get('Organization', { name: installation }).catch((error: unknown) => {
      if (makesOrganization || !isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
      return null;
    });
    if (organization === null) return false;
    const { spec } = organization;
    if (installationOf(organization) !== installation)
      throw new PosthornError('CONFLICT', `the Organization ${installation} belongs to the installation ${installationOf(organization)}`);
    const object = adminKeyObject(spec.namespace, key, 'Admin key of the installation');
    const isAnother = this.#adminKey !== null && this.#adminKey !== key;
    if (isAnother) this.#there.delete(idOf(object.kind, object.metadata));
    await this.#applyOne(object);
    if (isAnother) this.#options.logger.info({}, 'the admin key has changed; the earlier one is no longer valid');
    this.#adminKey = key;
    return true;
  }

  async #applyOne(object: ApplyObject): Promise<void> {
    const id = idOf(object.kind, object.metadata);
    if (this.#there.has(id)) return;
    const { store, logger, recorder } = this.#options;
    // From here on, so that a deletion between the reply and the record is seen.
    this.#there.add(id);
    try {
      const { made, fieldConflicts } = await applyRequired(store, object, bootstrapManager);
      const wasDeleted = this.#deleted.delete(id);
      const message = `${object.kind} ${object.metadata.name} was deleted, and the installation requires it: it has been made again`;
      for (const news of [...(wasDeleted ? [{ reason: 'MadeAgain', message }] : []), ...fieldConflicts]) {
        logger.warn({ kind: object.kind, namespace: object.metadata.namespace, name: object.metadata.name }, news.message);
        if (made.kind !== 'Namespace' && made.kind !== 'Secret') recorder.record({ object: made, type: 'Warning', ...news });
      }
    } catch (error) {
      this.#there.delete(id);
      throw error;
    }
  }
}

function idOf(kind: Kind, { namespace, name }: Key): string {
  return `${kind} ${namespace ?? ''}/${name}`;
}

/** For people, with what is wrong with each field. */
function complaintOf(what: string, error: unknown): string {
  const details = isPosthornError(error)
    ? Object.entries(error.details ?? {}).map(([field, texts]) => `${field}: ${texts.join(', ')}`)
    : [];
  return [`${what}: ${error instanceof Error ? error.message : String(error)}`, ...details].join('; ');
}
