import { useRef } from 'react';
import type { ApiError } from '../api/client.ts';

/** How long after the last try an equal request has the same key. */
const keptMs = 120_000;

export interface RequestKeys {
  /** The key of a request: an equal request has the same one until its end is known. */
  keyOf: (request: unknown) => string;
  /** A request has ended. `error`: its error; null: it has succeeded. */
  hasEnded: (error: ApiError | null) => void;
  /** The next request is another one. */
  drop: () => void;
}

/** Idempotency-Keys for one kind of request. A second try after an answer that did not come makes nothing twice. `expires`: a key ends two minutes after the last try. */
export function useIdempotencyKey({ expires = true }: { expires?: boolean } = {}): RequestKeys {
  const kept = useRef({ text: '', key: '', triedAtMs: 0 });
  const drop = (): void => {
    kept.current = { text: '', key: '', triedAtMs: 0 };
  };
  return {
    keyOf: (request) => {
      const text = JSON.stringify(request);
      const { current } = kept;
      const isSame = current.text === text && (!expires || Date.now() - current.triedAtMs < keptMs);
      kept.current = { text, key: isSame ? current.key : randomKey(), triedAtMs: Date.now() };
      return kept.current.key;
    },
    hasEnded: (error) => {
      if (error?.isPassing === true) kept.current = { ...kept.current, triedAtMs: Date.now() };
      else drop();
    },
    drop,
  };
}

/** 32 hexadecimal digits. A page that came over plain HTTP has no crypto.randomUUID. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
