import { type ReactElement, useState } from 'react';
import type { Answer } from '../api/client.ts';
import { useWrite } from '../app/use-api.ts';
import { Confirm } from '../ui/confirm.tsx';
import { Dial } from '../ui/dial.tsx';
import { countdown, duration, quantity } from '../ui/format.ts';
import { Icon } from '../ui/icon.tsx';
import { Clock, useNow } from '../ui/time.tsx';
import { type Circuit, probeAt } from './target-data.ts';

/** How the circuit between a route and a destination heals, and its reset. */
export function CircuitFacts({ circuit, target }: { circuit: Circuit; target: string }): ReactElement | null {
  const reset = useWrite('POST /routes/{id}/reset-circuit');
  const [asks, setAsks] = useState(false);
  if (circuit.state === 'closed') return null;
  const { routeId, routeName, cooldownSeconds, failureCount } = circuit;
  return (
    <section aria-label={`Circuit of the route ${routeName}`}>
      <div className="heal">
        <Wait circuit={circuit} />
        <div className="stack">
          <Next circuit={circuit} />
          <p className="muted small">
            The circuit from the route {routeName} opened
            {circuit.openedAt === null ? '' : ' at '}
            {circuit.openedAt === null ? null : <Clock at={circuit.openedAt} />} after {quantity(failureCount, 'failed attempt')} in a row.
            After {duration(cooldownSeconds * 1000)} waiting messages are the probes;{' '}
            {quantity(circuit.probeSuccessThreshold, 'success closes', 'successes close')} the circuit.
          </p>
          <div className="btn-row">
            <button type="button" className="btn is-sm" onClick={() => setAsks(true)}>
              Reset circuit…
            </button>
          </div>
        </div>
      </div>
      <Steps state={circuit.state} probes={`${circuit.probeSuccessCount} of ${quantity(circuit.probeSuccessThreshold, 'probe')}`} />
      <ResetQuestion
        what={`the circuits from ${routeName} to ${target} and to all other destinations of that route`}
        isOpen={asks}
        isPending={reset.isPending}
        error={reset.error}
        onClose={() => setAsks(false)}
        onAct={() => reset.mutate({ path: { id: routeId } }, { onSuccess: () => setAsks(false) })}
      />
    </section>
  );
}

/** The circuit of a webhook endpoint: how it heals, and its reset. */
export function EndpointCircuit({ endpoint }: { endpoint: Answer<'GET /webhook-endpoints/{id}'>['data'] }): ReactElement {
  const reset = useWrite('POST /webhook-endpoints/{id}/reset-circuit');
  const [asks, setAsks] = useState(false);
  const { id, url, circuitState, circuitFailureCount, circuitFailureThreshold, circuitCooldownSeconds, circuitSuccessThreshold } = endpoint;
  const circuit: Healing = {
    state: circuitState,
    cooldownSeconds: circuitCooldownSeconds,
    probeAt: probeAt(endpoint.lastFailureAt, circuitCooldownSeconds),
  };
  const opens = (
    <p className="muted small">
      It opens after {quantity(circuitFailureThreshold, 'failed attempt')} in a row. A probe is sent{' '}
      {duration(circuitCooldownSeconds * 1000)} after the last of them;{' '}
      {quantity(circuitSuccessThreshold, 'success closes', 'successes close')} the circuit.
    </p>
  );
  return (
    <section aria-label="Circuit">
      <header>
        <h3>Circuit</h3>
        <span className="hint">{quantity(circuitFailureCount, 'failed attempt')} in a row</span>
      </header>
      {circuitState === 'closed' ? (
        opens
      ) : (
        <div className="heal">
          <Wait circuit={circuit} />
          <div className="stack">
            <Next circuit={circuit} />
            {opens}
            <div className="btn-row">
              <button type="button" className="btn is-sm" onClick={() => setAsks(true)}>
                Reset circuit…
              </button>
            </div>
          </div>
        </div>
      )}
      <Steps state={circuitState} probes={`${quantity(circuitSuccessThreshold, 'probe closes', 'probes close')} it`} />
      <ResetQuestion
        what={`the circuit of ${url}`}
        isOpen={asks}
        isPending={reset.isPending}
        error={reset.error}
        onClose={() => setAsks(false)}
        onAct={() => reset.mutate({ path: { id } }, { onSuccess: () => setAsks(false) })}
      />
    </section>
  );
}

/** What is shown of a circuit while it heals. */
type Healing = Pick<Circuit, 'state' | 'probeAt' | 'cooldownSeconds'>;

interface ResetQuestionProps {
  what: string;
  isOpen: boolean;
  isPending: boolean;
  error: { message: string; requestId: string | null } | null;
  onClose: () => void;
  onAct: () => void;
}

function ResetQuestion({ what, ...rest }: ResetQuestionProps): ReactElement {
  return (
    <Confirm title={`Reset ${what}?`} act="Reset circuit" keep="Leave it open" {...rest}>
      <p>The circuit closes at once, without a probe. All that waits is attempted, at the pace of the target.</p>
      <p className="muted">If the receiver still fails, the attempts count as retries, and the circuit opens again.</p>
    </Confirm>
  );
}

function Wait({ circuit: { probeAt: at, cooldownSeconds, state } }: { circuit: Healing }): ReactElement {
  const now = useNow(1000);
  const leftMs = state !== 'open' || at === null ? 0 : Math.max(0, Date.parse(at) - now);
  return (
    <Dial
      label={`${Math.ceil(leftMs / 1000)} of ${cooldownSeconds} seconds until the next probe`}
      share={leftMs / (cooldownSeconds * 1000)}
      text={countdown(leftMs)}
      stroke="s-open"
    />
  );
}

function Next({ circuit: { state, probeAt: at } }: { circuit: Healing }): ReactElement {
  const now = useNow(1000);
  if (state === 'half_open') return <h3>Probes are under way</h3>;
  return <h3>{at === null || Date.parse(at) <= now ? 'The next message is the probe' : 'Until the next probe'}</h3>;
}

function Steps({ state, probes }: { state: Circuit['state']; probes: string }): ReactElement {
  const steps = [
    { key: 'open', mark: 'open', word: 'Open', says: 'messages wait', tone: 'is-open' },
    { key: 'half_open', mark: 'half', word: 'Half open', says: probes, tone: 'is-open' },
    { key: 'closed', mark: 'closed', word: 'Closed', says: 'deliveries flow', tone: 'is-ok' },
  ];
  return (
    <ol className="steps" aria-label="How the circuit heals">
      {steps.map(({ key, mark, word, says, tone }) => (
        <li key={key} className={key === state ? tone : undefined} aria-current={key === state ? 'step' : undefined}>
          <Icon name={mark} size={14} />
          <span>
            <b>{word}</b> {says}
          </span>
        </li>
      ))}
    </ol>
  );
}
