import type { ReactElement } from 'react';
import { Icon } from './icon.tsx';

export type Tone = 'ok' | 'bad' | 'warn' | 'open' | 'run' | 'idle';

interface Look {
  word: string;
  tone: Tone;
  mark: string;
}

const look = (word: string, tone: Tone, mark: string): Look => ({ word, tone, mark });

/** The states of the API: of events, deliveries, messages, attempts, circuits and replays. */
const looks = new Map<string, Look>([
  ['pending', look('Pending', 'idle', 'pending')],
  ['queued', look('Queued', 'idle', 'pending')],
  ['waiting', look('Waiting', 'idle', 'pending')],
  ['planning', look('Planning', 'run', 'run')],
  ['processing', look('Processing', 'run', 'run')],
  ['running', look('Running', 'run', 'run')],
  ['retrying', look('Retrying', 'warn', 'retry')],
  ['circuit_open', look('Circuit open', 'open', 'open')],
  ['open', look('Open', 'open', 'open')],
  ['half_open', look('Half open', 'open', 'half')],
  ['closed', look('Closed', 'ok', 'closed')],
  ['healthy', look('Healthy', 'ok', 'closed')],
  ['partial', look('Partial', 'warn', 'warn')],
  ['degraded', look('Degraded', 'warn', 'warn')],
  ['delivered', look('Delivered', 'ok', 'ok')],
  ['success', look('Delivered', 'ok', 'ok')],
  ['succeeded', look('Succeeded', 'ok', 'ok')],
  ['verified', look('Verified', 'ok', 'ok')],
  ['ready', look('Ready', 'ok', 'ok')],
  ['not_ready', look('Not ready', 'bad', 'fail')],
  ['unknown', look('Unknown', 'warn', 'warn')],
  ['failed', look('Failed', 'bad', 'fail')],
  ['refused', look('Refused', 'bad', 'fail')],
  ['schema_failed', look('Schema failed', 'bad', 'fail')],
  ['transform_failed', look('Transform failed', 'bad', 'fail')],
  ['cancelled', look('Cancelled', 'idle', 'skip')],
  ['dlq', look('Dead letter', 'bad', 'dead')],
  ['exhausted', look('Exhausted', 'bad', 'dead')],
  ['filtered', look('Filtered', 'idle', 'skip')],
  ['no_routes', look('No routes', 'idle', 'skip')],
  ['disabled', look('Disabled', 'idle', 'pausedm')],
  ['paused', look('Paused', 'idle', 'pausedm')],
  ['suspended', look('Suspended', 'idle', 'pausedm')],
]);

/** A mark, a word and a colour, always together. `state` is the word of the API in lower case. */
export function State({ state, word, isPill = false }: { state: string; word?: string; isPill?: boolean }): ReactElement {
  const { word: usual, tone, mark } = looks.get(state) ?? look(state.replaceAll('_', ' '), 'idle', 'pending');
  return (
    <span className={`state is-${tone}${isPill ? ' is-pill' : ''}`}>
      <Icon name={mark} size={14} className={mark === 'run' ? 'spin' : undefined} />
      {word ?? usual}
    </span>
  );
}

/** The tone of a state in lower case; one that is not known is `idle`. */
export function toneOfState(state: string): Tone {
  return looks.get(state)?.tone ?? 'idle';
}

/** The word of a state, such as `Dead letter` of `dlq`. */
export function stateWord(state: string): string {
  return looks.get(state)?.word ?? state.replaceAll('_', ' ');
}

/** A response status, coloured by its class. */
export function Code({ status }: { status: number | null | undefined }): ReactElement {
  if (status === null || status === undefined) return <span className="dim">–</span>;
  const tone = status < 300 ? 'ok' : status < 400 ? 'warn' : 'bad';
  return <span className={`code is-${tone}`}>{status}</span>;
}
