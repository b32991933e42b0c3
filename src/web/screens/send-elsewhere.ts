import { useEffect, useRef, useState } from 'react';
import { call } from '../api/client.ts';
import { retryRateLimited } from '../app/retry-rate-limited.ts';
import { useOrganization, useWrite } from '../app/use-api.ts';
import { isUnderWay, newReplayName, type Replay } from './replay-parts.tsx';

/** What something was sent again as, or the replay that will do it. */
export type Resent = { deliveryId: string } | { messageId: string } | { replayId: string };

/** Statuses for a replay. */
const statuses = ['delivered', 'failed', 'filtered', 'transform_failed', 'dlq'] as const;
const everyMs = 300;
/** After it the page of the replay opens, which shows what the replay waits for. */
const longestMs = 10_000;

interface Try {
  to: string;
  name: string;
  /** Null: the API has not answered yet. */
  created: Replay | null;
}

/** Sends a delivery to another destination, by a replay of this one delivery. */
export function useSendElsewhere(id: string) {
  const organization = useOrganization();
  const create = useWrite('POST /replays');
  const [state, setState] = useState<{ isWaiting: boolean; error: string | null }>({ isWaiting: false, error: null });
  // A repeated press reuses the replay, so that it runs once.
  const last = useRef<Try | null>(null);
  const waiting = useRef(new AbortController());
  useEffect(() => () => waiting.current.abort(), []);
  const send = async ({ to, eventId }: { to: string; eventId: string }): Promise<Resent> => {
    const current = last.current?.to === to ? last.current : { to, name: newReplayName(), created: null };
    last.current = current;
    waiting.current = new AbortController();
    const { signal } = waiting.current;
    setState({ isWaiting: true, error: null });
    try {
      const body = {
        name: current.name,
        what: 'deliveries' as const,
        filter: { id: [id], status: [...statuses] },
        toDestinationId: to,
      };
      current.created ??= await create.mutateAsync({ body });
      const replay = await endOf(current.created, organization, signal);
      if (!hasEnded(replay)) return { replayId: replay.id };
      // The event may have an earlier delivery to the destination, which is another one.
      if (replay.queued === 0) {
        // The next press is another try.
        if (last.current === current) last.current = null;
        throw new Error(refusal(replay));
      }
      const query = { eventId, destinationId: [to], limit: 100 };
      const { data } = await call('GET /deliveries', { query }, { organization });
      const made = data.find(({ replayedFrom }) => replayedFrom === id);
      if (!signal.aborted) setState({ isWaiting: false, error: null });
      return made === undefined ? { replayId: replay.id } : { deliveryId: made.id };
    } catch (thrown) {
      if (!signal.aborted) setState({ isWaiting: false, error: thrown instanceof Error ? thrown.message : String(thrown) });
      throw thrown;
    }
  };
  const reset = (): void => {
    waiting.current.abort();
    create.reset();
    last.current = null;
    setState({ isWaiting: false, error: null });
  };
  return { send, reset, isPending: state.isWaiting, error: state.error };
}

function hasEnded(replay: Replay): boolean {
  return !isUnderWay(replay) && replay.phase !== 'Suspended';
}

/** The replay once it has ended, or its state after ten seconds. */
async function endOf(created: Replay, organization: string, signal: AbortSignal): Promise<Replay> {
  const untilMs = Date.now() + longestMs;
  for (let replay = created; ; ) {
    if (hasEnded(replay) || Date.now() > untilMs) return replay;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
    signal.throwIfAborted();
    replay = await retryRateLimited(() => call('GET /replays/{id}', { path: { id: created.id } }, { organization }), signal);
  }
}

function refusal({ phase, failure, skippedByReason }: Replay): string {
  if (phase === 'Cancelled') return 'It was not sent: the replay was cancelled.';
  if (failure !== null) return `It was not sent: ${failure.message}`;
  const [reason] = Object.keys(skippedByReason);
  return reason === undefined
    ? 'It was not sent: it is under way, is not stored any more, or a schema refused it.'
    : `It was not sent: ${reason}.`;
}
