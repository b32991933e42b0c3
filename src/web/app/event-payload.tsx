import { type ReactElement, useMemo, useState } from 'react';
import type { Answer } from '../api/client.ts';
import { bytes } from '../ui/format.ts';
import { Failure } from '../ui/notices.tsx';
import { Payload } from '../ui/payload.tsx';
import { useBytes } from './use-api.ts';

/** The payload of an event, byte for byte; of a large one the beginning, until the reader requests all. */
export function EventPayload({ event }: { event: Answer<'GET /events/{id}'> }): ReactElement {
  const { id, contentType, payload, payloadEncoding, payloadTruncated = false } = event;
  const [wantsAll, setWantsAll] = useState(false);
  const isRead = payloadEncoding !== null && (!payloadTruncated || wantsAll);
  const { data, error, refetch } = useBytes('GET /events/{id}/payload', { path: { id } }, { isEnabled: isRead });
  const all = useMemo(() => (data === undefined ? null : { bytes: data }), [data]);
  const beginning = useMemo(
    () => (payloadTruncated ? sourceOf(payload, payloadEncoding) : null),
    [payload, payloadEncoding, payloadTruncated],
  );
  const source = all ?? beginning;
  if (payloadEncoding === null) return <p className="muted">The payload is gone: its retention has ended, or the source keeps none.</p>;
  return (
    <>
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />}
      {wantsAll && data === undefined && error === null ? (
        <p className="small muted" role="status">
          Reading {bytes(event.size)}…
        </p>
      ) : null}
      {source === null ? (
        error === null ? (
          <p className="muted" role="status">
            Reading the payload…
          </p>
        ) : null
      ) : (
        <Payload source={source} contentType={contentType} isTruncated={all === null} onReadAll={() => setWantsAll(true)} />
      )}
    </>
  );
}

/** What the record of an event has of its payload. */
function sourceOf(payload: unknown, encoding: 'json' | 'text' | 'base64' | null): { text: string } | { bytes: Uint8Array } {
  if (encoding === 'base64') return { bytes: Uint8Array.from(atob(String(payload)), (each) => each.charCodeAt(0)) };
  return { text: encoding === 'json' && typeof payload !== 'string' ? JSON.stringify(payload) : String(payload) };
}
