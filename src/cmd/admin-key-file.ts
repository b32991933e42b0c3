import type { Clock } from '../core/clock.ts';
import { PosthornError } from '../core/errors.ts';
import { adminApiKey } from './config-values.ts';
import { readTextFile } from './file-variables.ts';
import { issuesText } from './issues-text.ts';

const recheckMs = 10_000;

/** The admin key of an installation, which may change while it runs. */
export interface AdminKeySource {
  /** Throws INVALID_CONFIG when there is none that can be used. */
  read(): string;
  /** Resolves once `read` no longer returns `key`, or the signal aborts. */
  changed(key: string, clock: Clock, signal: AbortSignal): Promise<void>;
}

/** The key in the file; else one that does not change. Null: there is neither. */
export function adminKeySource({ key, file }: { key: string | undefined; file: string | undefined }): AdminKeySource | null {
  if (file !== undefined) return new AdminKeyFile(file);
  return key === undefined ? null : { read: () => key, changed: (_, _clock, signal) => aborted(signal) };
}

class AdminKeyFile implements AdminKeySource {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  read(): string {
    const text = this.#text();
    if (text === null) throw new PosthornError('INVALID_CONFIG', `${this.#file} cannot be read`);
    const { success, data, error } = adminApiKey.safeParse(text);
    if (success) return data;
    throw new PosthornError('INVALID_CONFIG', `${this.#file} ${issuesText(error)}`);
  }

  #text(): string | null {
    return readTextFile(this.#file)?.trim() ?? null;
  }

  async changed(key: string, clock: Clock, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (this.#text() !== key) return;
      await clock.sleep(recheckMs, signal);
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
