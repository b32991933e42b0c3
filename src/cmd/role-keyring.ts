import { Gauge, type Registry } from 'prom-client';
import { type EncryptionKey, Keyring } from '../core/sealing.ts';
import { encryptionKeys } from './config-values.ts';
import { readTextFile } from './file-variables.ts';
import { issuesText } from './issues-text.ts';
import type { RoleContext } from './role-process.ts';
import type { SecretsConfig } from './secrets-config.ts';

const recheckMs = 10_000;
/** At most one reading in this time for keys that are not in the keyring. */
const rereadMs = 1000;

type Context = Pick<RoleContext, 'clock' | 'logger' | 'registry' | 'stopping'>;

/**
 * Returns the keyring of a role. If the keys are in a file, the role reads it every 10 seconds until it stops, and at once when a value
 * was sealed with an unknown key. If the file cannot be used, the earlier keys remain in force. `onChange` is called
 * after each change of the keys: the caller drops its cached records, whose values may be sealed with a key that was removed.
 */
export function roleKeyring(
  { encryptionKeys: keys, encryptionKeysFile: file }: Pick<SecretsConfig, 'encryptionKeys' | 'encryptionKeysFile'>,
  context: Context,
  onChange: () => void = () => {},
): Keyring {
  const gauge = encryptionKeyInfo(context.registry);
  const show = (shown: readonly EncryptionKey[]): void => {
    gauge.reset();
    for (const [i, { id }] of shown.entries()) gauge.set({ id, use: i === 0 ? 'seal' : 'open' }, 1);
  };
  show(keys);
  if (file === undefined) return new Keyring(keys);
  const keysFile = new KeysFile(file, keys, context, (changed) => {
    show(changed);
    onChange();
  });
  const keyring = new Keyring(keys, () => keysFile.changedKeys(rereadMs));
  void follow(keyring, context);
  return keyring;
}

async function follow(keyring: Keyring, { clock, stopping }: Context): Promise<void> {
  while (!stopping.aborted) {
    await clock.sleep(recheckMs, stopping);
    keyring.refresh();
  }
}

class KeysFile {
  readonly #file: string;
  readonly #context: Context;
  readonly #onChange: (keys: readonly EncryptionKey[]) => void;
  #last: string;
  #complaint = '';
  #readAtMs = 0;

  constructor(file: string, keys: readonly EncryptionKey[], context: Context, onChange: (keys: readonly EncryptionKey[]) => void) {
    this.#file = file;
    this.#last = identityOf(keys);
    this.#context = context;
    this.#onChange = onChange;
  }

  /** Null: the keys are the same, the file cannot be used, or it was read less than `pauseMs` ago. */
  changedKeys(pauseMs: number): readonly EncryptionKey[] | null {
    const nowMs = this.#context.clock.now();
    if (Math.abs(nowMs - this.#readAtMs) < pauseMs) return null;
    this.#readAtMs = nowMs;
    const text = readTextFile(this.#file);
    if (text === null) return this.#refused('cannot be read');
    const { success, data: keys, error } = encryptionKeys.safeParse(text);
    if (!success) return this.#refused(issuesText(error));
    this.#complaint = '';
    const identity = identityOf(keys);
    if (identity === this.#last) return null;
    this.#last = identity;
    this.#context.logger.info({ ids: keys.map(({ id }) => id) }, 'the encryption keys have changed; the first one seals, all open');
    this.#onChange(keys);
    return keys;
  }

  #refused(reason: string): null {
    if (reason !== this.#complaint)
      this.#context.logger.warn({ file: this.#file, reason }, 'the encryption keys cannot be read; those read before remain in use');
    this.#complaint = reason;
    return null;
  }
}

function identityOf(keys: readonly EncryptionKey[]): string {
  return keys.map(({ id, key }) => `${id}:${Buffer.from(key).toString('base64')}`).join(',');
}

export function encryptionKeyInfo(registry: Registry): Gauge<'id' | 'use'> {
  return new Gauge({
    name: 'posthorn_encryption_key_info',
    help: 'Always 1; the labels have the id of an encryption key of the process and its use: the newest key seals and opens, the others open.',
    labelNames: ['id', 'use'],
    registers: [registry],
  });
}
