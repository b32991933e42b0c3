import { watch } from 'chokidar';
import { Gauge, type Registry } from 'prom-client';
import type { Clock } from '../../core/clock.ts';
import { defaultInstallation } from '../../core/default-installation.ts';
import type { Logger } from '../../core/logger.ts';
import type { ApplyObject } from '../../store/store.ts';
import type { ManifestApplier } from './apply.ts';
import { ofInstallation } from './of-installation.ts';
import type { ManifestError } from './parse.ts';
import { readManifests } from './read-directory.ts';

/** Editors and git write several files at once; the last of them starts the load. */
const quietMs = 150;
const firstRetryMs = 250;
const longestRetryMs = 30_000;
/** With the pauses between them about 30 s. */
const maxEarlyLoads = 7;

export interface ManifestsLoad {
  files: number;
  objects: readonly ApplyObject[];
  errors: readonly ManifestError[];
  /** How many objects wait for the namespace of an Organization of the directory. */
  waiting: number;
  pruned: readonly string[];
}

export interface ManifestsDirectoryOptions {
  directory: string;
  applier: ManifestApplier;
  clock: Clock;
  logger: Logger;
  registry: Registry;
  /** Called after every load whose outcome differs from the one before. */
  onLoad(load: ManifestsLoad): void;
}

export function manifestErrors(registry: Registry): Gauge {
  return new Gauge({
    name: 'posthorn_manifest_errors',
    help: 'Errors in the manifests directory at the last load.',
    registers: [registry],
  });
}

/**
 * Keeps the resource store equal to a directory of manifests: after any change all files are read, and what differs is
 * applied. Objects whose manifest is gone are deleted, but not while a file is broken, as it may contain them.
 */
export class ManifestsDirectory {
  readonly name = 'manifests';
  readonly #options: ManifestsDirectoryOptions;
  readonly #errorCount: Gauge;
  #lastOutcome = '';
  #earlyLoads = 0;

  constructor(options: ManifestsDirectoryOptions) {
    this.#options = options;
    this.#errorCount = manifestErrors(options.registry);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { directory, clock, logger } = this.#options;
    let changed = new AbortController();
    const watcher = watch(directory, {
      ignoreInitial: true,
      ignored: (path) => /(^|[\\/])\.[^.\\/][^\\/]*$/.test(path.slice(directory.length)),
    });
    watcher.on('all', () => changed.abort());
    watcher.on('error', (error) => logger.warn({ err: error }, 'the watch of the manifests directory failed'));
    try {
      let failures = 0;
      while (!signal.aborted) {
        changed = new AbortController();
        const isComplete = await this.#load();
        failures = isComplete ? 0 : failures + 1;
        const retryMs = isComplete ? Number.POSITIVE_INFINITY : Math.min(longestRetryMs, firstRetryMs * 2 ** Math.min(failures - 1, 20));
        const until = AbortSignal.any([changed.signal, signal]);
        if (Number.isFinite(retryMs)) await clock.sleep(retryMs * (0.8 + Math.random() * 0.4), until);
        else await aborted(until);
        await this.#settle(
          () => changed,
          (next) => (changed = next),
          signal,
        );
      }
    } finally {
      await watcher.close();
    }
  }

  /** Waits until nothing has changed for a moment. */
  async #settle(current: () => AbortController, renew: (next: AbortController) => void, signal: AbortSignal): Promise<void> {
    while (current().signal.aborted && !signal.aborted) {
      const next = new AbortController();
      renew(next);
      await this.#options.clock.sleep(quietMs, AbortSignal.any([next.signal, signal]));
    }
  }

  /** True when the next load is due only after a change. */
  async #load(): Promise<boolean> {
    const { directory, applier, onLoad } = this.#options;
    let load: ManifestsLoad;
    let isComplete = true;
    try {
      const { files, objects: found, errors: unreadable } = await readManifests(directory);
      const { own: objects, refused: ofOthers } = ofInstallation(found, defaultInstallation);
      const errors = [...unreadable, ...ofOthers];
      const failures = await applier.apply(objects);
      isComplete = failures.every(({ passing }) => !passing);
      // Organizations make their namespaces in a moment; what lies in them is no error before that takes too long.
      this.#earlyLoads = failures.some(({ isEarly }) => isEarly) ? this.#earlyLoads + 1 : 0;
      const isPatient = this.#earlyLoads <= maxEarlyLoads;
      const reported = failures.filter(({ isEarly }) => !(isEarly && isPatient));
      const refused = reported.map(({ object, message }) => ({ file: `${object.kind} ${object.metadata.name}`, message }));
      const pruned = errors.length === 0 ? await applier.prune(objects) : [];
      load = { files, objects, errors: [...errors, ...refused], waiting: failures.length - reported.length, pruned };
    } catch (error) {
      load = {
        files: 0,
        objects: [],
        errors: [{ file: directory, message: error instanceof Error ? error.message : String(error) }],
        waiting: 0,
        pruned: [],
      };
      isComplete = false;
    }
    this.#errorCount.set(load.errors.length);
    const outcome = JSON.stringify([load.files, load.objects, load.errors, load.waiting]);
    if (outcome !== this.#lastOutcome || load.pruned.length > 0) onLoad(load);
    this.#lastOutcome = outcome;
    return isComplete;
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
