import { useRef, useState } from 'react';
import { call } from '../api/client.ts';
import { patiently } from '../app/patiently.ts';
import { useOrganization, useWrite } from '../app/use-api.ts';
import { isUnderWay, type Replay } from './replay-parts.tsx';

/** What something was sent again as, or the replay that will do it. */
export type Resent = { deliveryId: string } | { messageId: string } | { replayId: string };

/** What a replay of deliveries takes. */
const statuses = ['delivered', 'failed', 'filtered', 'transform_failed', 'dlq'] as const;
const everyMs = 300;
/** After it the page of the replay says what it waits for. */
const longestMs = 10_000;

/** Sends a delivery to another destination, by a replay of this one delivery. */
export function useSendElsewhere(id: string, eventId: string) {
  const organization = useOrganization();
  const create = useWrite('POST /replays');
  const [state, setState] = useState<{ isWaiting: boolean; error: string | null }>({ isWaiting: false, error: null });
  // A second press, after an answer that was lost, names the same replay: it does not run twice.
  const name = useRef({ to: '', text: '' });
  const send = async (to: string): Promise<Resent> => {
    if (name.current.to !== to) name.current = { to, text: `replay-${Date.now().toString(36)}` };
    setState({ isWaiting: true, error: null });
    try {
      const body = {
        name: name.current.text,
        what: 'deliveries' as const,
        filter: { id: [id], status: [...statuses] },
        toDestinationId: to,
      };
      const created = await create.mutateAsync({ body });
      const replay = await endOf(created, organization);
      if (isUnderWay(replay)) return { replayId: replay.id };
      const query = { eventId, destinationId: [to], limit: 100 };
      const { data } = await call('GET /deliveries', { query }, { organization });
      const made = data.find(({ replayedFrom }) => replayedFrom === id);
      if (made === undefined) {
        // The next press is another try.
        name.current = { to: '', text: '' };
        throw new Error(refusal(replay));
      }
      setState({ isWaiting: false, error: null });
      return { deliveryId: made.id };
    } catch (thrown) {
      setState({ isWaiting: false, error: thrown instanceof Error ? thrown.message : String(thrown) });
      throw thrown;
    }
  };
  const reset = (): void => {
    create.reset();
    name.current = { to: '', text: '' };
    setState({ isWaiting: false, error: null });
  };
  return { send, reset, isPending: state.isWaiting, error: state.error };
}

/** The replay once it has ended, or after ten seconds as it stands. */
async function endOf(created: Replay, organization: string): Promise<Replay> {
  const { signal } = new AbortController();
  const untilMs = Date.now() + longestMs;
  for (let replay = created; ; ) {
    if (!isUnderWay(replay) || Date.now() > untilMs) return replay;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
    replay = await patiently(() => call('GET /replays/{id}', { path: { id: created.id } }, { organization }), signal);
  }
}

function refusal({ failure, skippedByReason }: Replay): string {
  if (failure !== null) return `It was not sent: ${failure.message}`;
  const [reason] = Object.keys(skippedByReason);
  return reason === undefined
    ? 'It was not sent: it is under way, is not stored any more, or a schema refused it.'
    : `It was not sent: ${reason}.`;
}
