import { setTimeout as sleep } from 'node:timers/promises';

const maxTries = 10;

/**
 * Posts JSON to a source whose dedupStrategy is `idempotency_key`, as a sender does: an event that is answered 503 is sent again under its key after the
 * seconds of Retry-After. Ingest answers 503 where a busy machine holds up Redis for longer than 1.5 s. Throws with the answer that is not 2xx.
 */
export async function sendEvent(
  ingestUrl: string,
  key: string | number,
  body: string,
  more: Readonly<Record<string, string>> = {},
): Promise<void> {
  const headers = { ...more, 'content-type': 'application/json', 'idempotency-key': String(key) };
  for (let tries = 1; ; tries++) {
    const response = await fetch(ingestUrl, { method: 'POST', headers, body, signal: AbortSignal.timeout(30_000) });
    const answer = await response.text();
    if (response.ok) return;
    if (response.status !== 503 || tries === maxTries) throw new Error(`event ${key}: ingest answered ${response.status}: ${answer}`);
    await sleep(Number(response.headers.get('retry-after')) * 1000);
  }
}
