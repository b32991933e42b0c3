import { useRef } from 'react';

export interface RequestKeys {
  /** The key of a request: an equal request has the same one until it has succeeded. */
  keyOf: (request: unknown) => string;
  hasSucceeded: () => void;
}

/** Idempotency-Keys for one kind of request. A second try after an answer that did not come makes nothing twice. */
export function useIdempotencyKey(): RequestKeys {
  const kept = useRef({ text: '', key: '' });
  return {
    keyOf: (request) => {
      const text = JSON.stringify(request);
      if (kept.current.text !== text) kept.current = { text, key: randomKey() };
      return kept.current.key;
    },
    hasSucceeded: () => {
      kept.current = { text: '', key: '' };
    },
  };
}

/** 32 hexadecimal digits. A page that came over plain HTTP has no crypto.randomUUID. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
