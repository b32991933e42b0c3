import { PosthornError } from '../../../core/errors.ts';

/** Whether an object waits for the signing secret that its import left out, before and after a request. */
interface Awaiting {
  /** As it is stored. */
  stored: boolean | undefined;
  sent: boolean | undefined;
  sentSecret: string | null | undefined;
  hasSecret: boolean;
  isEnabled: boolean;
}

/** The value in the spec: true, or nothing. VALIDATION_FAILED where it would be enabled without the secret that it waits for. */
export function awaitedSecretToSpec({ stored, sent, sentSecret, hasSecret, isEnabled }: Awaiting): true | undefined {
  const isAwaited = !hasSecret && (sent ?? (sentSecret === null ? false : stored)) === true;
  if (!isAwaited) return undefined;
  if (!isEnabled) return true;
  const complaint =
    'is missing: the import left it out. Send it before or with enabled, or send awaitsSigningSecret false to work without one';
  throw new PosthornError('VALIDATION_FAILED', `signingSecret ${complaint}.`, { details: { signingSecret: [complaint] } });
}
