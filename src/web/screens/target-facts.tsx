import { Link } from '@tanstack/react-router';
import { type ReactElement, useMemo } from 'react';
import type { Answer } from '../api/client.ts';
import { beginOf, rangeOf } from '../app/range.ts';
import { EditLink } from '../app/resource-form/form-links.tsx';
import { useOrganization, useRead } from '../app/use-api.ts';
import { Drawer } from '../ui/drawer.tsx';
import { count, duration, expiryWords, percent, quantity } from '../ui/format.ts';
import { Failure, Loading } from '../ui/notices.tsx';
import { State } from '../ui/state.tsx';
import { Ago, useNow } from '../ui/time.tsx';
import { backlogWords, recentQuery } from './backlog.ts';
import { CircuitFacts, EndpointCircuit } from './circuit.tsx';
import { EndpointFailure } from './endpoint-failure.tsx';
import { DeliveryCauses, MessageCauses } from './failure-causes.tsx';
import { SignatureFacts } from './signature-facts.tsx';
import { Subscriptions } from './subscriptions.tsx';
import { endpointState, isEndpointId, targetWord, useCircuits } from './target-data.ts';
import { destinationState } from './target-state.ts';
import { DestinationSwitch, EndpointSwitch } from './target-switch.tsx';
import { TemplateFacts } from './template-facts.tsx';
import { TestSend } from './test-send.tsx';

type Destination = Answer<'GET /destinations/{id}'>;
type Endpoint = Answer<'GET /webhook-endpoints/{id}'>['data'];

const day = rangeOf('24h');
const everyMs = 10_000;

/** A target beside the list. */
export function TargetDrawer({ id, onClose }: { id: string; onClose: () => void }): ReactElement {
  return isEndpointId(id) ? <EndpointDrawer id={id} onClose={onClose} /> : <DestinationDrawer id={id} onClose={onClose} />;
}

function DestinationDrawer({ id, onClose }: { id: string; onClose: () => void }): ReactElement {
  const org = useOrganization();
  const { data, error, refetch } = useRead('GET /destinations/{id}', { path: { id } }, { everyMs });
  return (
    <Drawer
      label="Selected target"
      onClose={onClose}
      head={
        <>
          {data === undefined ? null : <DestinationState destination={data} />}
          <h2>{data?.name}</h2>
          <span className="spacer" />
          <TestSend id={id} isSmall />
        </>
      }
      foot={
        <>
          <Link className="btn" to="/o/$org/targets/$id" params={{ org, id }}>
            Open
          </Link>
          <EditLink family="destinations" id={id} />
          {data === undefined ? null : <DestinationSwitch id={id} name={data.name} enabled={data.enabled} />}
          <Link className="btn" to="/o/$org/deliveries" params={{ org }} search={{ destinationId: id }}>
            Deliveries
          </Link>
          <Link className="btn" to="/o/$org/dead-letters" params={{ org }} search={{ destinationId: id }}>
            Dead letters
          </Link>
        </>
      }
    >
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />}
      {data === undefined ? error === null ? <Loading what="the destination" /> : null : <DestinationFacts destination={data} />}
    </Drawer>
  );
}

function EndpointDrawer({ id, onClose }: { id: string; onClose: () => void }): ReactElement {
  const org = useOrganization();
  const { data: answer, error, refetch } = useRead('GET /webhook-endpoints/{id}', { path: { id } }, { everyMs });
  const endpoint = answer?.data;
  return (
    <Drawer
      label="Selected target"
      onClose={onClose}
      head={
        <>
          {endpoint === undefined ? null : <State state={endpointState(endpoint)} word={targetWord(endpointState(endpoint))} isPill />}
          <strong title={endpoint?.url}>{endpoint?.url.replace(/^https?:\/\//, '')}</strong>
          <span className="spacer" />
          <TestSend id={id} isSmall />
        </>
      }
      foot={
        <>
          <Link className="btn" to="/o/$org/targets/$id" params={{ org, id }}>
            Open
          </Link>
          <EditLink family="endpoints" id={id} />
          {endpoint === undefined ? null : <EndpointSwitch endpoint={endpoint} />}
          <Link className="btn" to="/o/$org/messages" params={{ org }} search={{ endpointId: id }}>
            Messages
          </Link>
          <Link className="btn" to="/o/$org/dead-letters" params={{ org }} search={{ kind: 'messages', endpointId: id }}>
            Dead letters
          </Link>
        </>
      }
    >
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />}
      {endpoint === undefined ? error === null ? <Loading what="the endpoint" /> : null : <EndpointFacts endpoint={endpoint} />}
    </Drawer>
  );
}

export function DestinationState({ destination: { id, enabled } }: { destination: Destination }): ReactElement {
  const health = useRead('GET /analytics/destinations/health', { query: { range: day.value } }, { everyMs });
  const { knownOf } = useCircuits([id]);
  const own = health.data?.destinations.find(({ destinationId }) => destinationId === id);
  const state = destinationState(enabled, own, knownOf(id), useNow(everyMs));
  return <State state={state} word={targetWord(state)} isPill />;
}

/** Circuits, what waits, how it has done, and why attempts failed. */
export function DestinationFacts({ destination }: { destination: Destination }): ReactElement {
  const { id, url, type, throttle, retryPolicy, expiresAfterSeconds, timeoutMs, forwardHeaders, headerTemplates, ordered } = destination;
  const { payloadForm, signatureScheme, publicKey, previousPublicKeys, signingSecret, awaitsSigningSecret } = destination;
  const { circuits } = useCircuits([id]);
  const from = useDayBegin();
  const series = useRead('GET /analytics/series', { query: { from, step: day.step, destinationId: id } }, { everyMs });
  const recent = useRead('GET /analytics/series', { query: { ...recentQuery(useNow(60_000)), destinationId: id } }, { everyMs });
  const isHeld = circuits.some(({ state }) => state === 'open');
  const total = series.data?.total;
  const ended = (total?.delivered ?? 0) + (total?.failed ?? 0);
  return (
    <>
      {circuits.map((circuit) => (
        <CircuitFacts key={circuit.routeId} circuit={circuit} target={destination.name} />
      ))}
      <section aria-label="Facts">
        <header>
          <h3>Waiting and sent</h3>
          <span className="hint">{day.said}</span>
        </header>
        <dl className="kv is-tight">
          <dt>Waiting now</dt>
          <dd>{backlogWords(recent.data, { readAtMs: recent.dataUpdatedAt, isHeld })}</dd>
          <dt>Attempts</dt>
          <dd>
            {count(total?.attempts ?? 0)}
            {ended === 0 ? '' : `; ${percent((total?.delivered ?? 0) / ended)} of ${quantity(ended, 'message')} delivered`}
          </dd>
          <dt>Latency</dt>
          <dd>
            {total?.p95Latency === undefined || total.p95Latency === null
              ? '–'
              : `${duration(total.p50Latency ?? 0)} p50, ${duration(total.p95Latency)} p95`}
          </dd>
          <dt>Circuits</dt>
          <dd>{total === undefined ? '–' : openedWords(total.circuitsOpened ?? 0)}</dd>
          <dt>{type === 'http' ? 'Address' : 'Writes to'}</dt>
          <dd>{url}</dd>
          <dt>Throttle</dt>
          <dd>{throttleWords(throttle)}</dd>
          <dt>Retries</dt>
          <dd>
            {retryWords(retryPolicy)}
            {timeoutMs === undefined ? '' : `; an attempt has ${duration(timeoutMs)}`}
          </dd>
          <dt>Expiry</dt>
          <dd>{expiryWords(expiresAfterSeconds)}</dd>
          {signatureScheme === undefined ? null : (
            <SignatureFacts
              signing={{ signatureScheme, publicKey: publicKey ?? null, previousPublicKeys: previousPublicKeys ?? [] }}
              isSigned={signingSecret != null}
              isAwaited={awaitsSigningSecret === true}
            />
          )}
          {payloadForm === 'thin' ? <ThinForm /> : null}
          {ordered === true ? <Order /> : null}
          <TemplateFacts templates={Object.entries(headerTemplates ?? {}).map(([name, template]) => ({ name, template }))} />
          {forwardHeaders === undefined ? null : (
            <>
              <dt>Headers of events</dt>
              <dd>{forwardedWords(forwardHeaders)}</dd>
            </>
          )}
        </dl>
        {series.error === null ? null : <Failure message={series.error.message} requestId={series.error.requestId} />}
      </section>
      <DeliveryCauses destinationId={id} from={from} />
    </>
  );
}

function openedWords(times: number): string {
  if (times === 0) return 'none opened';
  return times === 1 ? 'opened once' : `opened ${count(times)} times`;
}

function ThinForm(): ReactElement {
  return (
    <>
      <dt>Body</dt>
      <dd>thin: id, type, time and a link to the payload, which needs no key and ends after 7 days</dd>
    </>
  );
}

function Order(): ReactElement {
  return (
    <>
      <dt>Order</dt>
      <dd>in the order of acceptance, one at a time: a message that is tried again holds up those behind it</dd>
    </>
  );
}

export function EndpointFacts({ endpoint }: { endpoint: Endpoint }): ReactElement {
  const from = useDayBegin();
  const { id, url, totalMessages, totalSuccesses, totalFailures, avgResponseTimeMs, rateLimitPerSecond, timeoutSeconds } = endpoint;
  const { retryDelays, expiresAfterSeconds, successStatusCodes } = endpoint;
  const ended = totalSuccesses + totalFailures;
  const recent = useRead('GET /webhooks/analytics/series', { query: { ...recentQuery(useNow(60_000)), endpointId: id } }, { everyMs });
  const isHeld = endpoint.circuitState === 'open';
  return (
    <>
      {endpoint.circuitState === 'closed' && endpoint.circuitFailureCount === 0 ? null : <EndpointCircuit endpoint={endpoint} />}
      <section aria-label="Facts">
        <header>
          <h3>Sent</h3>
          <span className="hint">since it was made</span>
        </header>
        <dl className="kv is-tight">
          <dt>Waiting now</dt>
          <dd>{backlogWords(recent.data?.data, { readAtMs: recent.dataUpdatedAt, isHeld })}</dd>
          <dt>Messages</dt>
          <dd>{count(totalMessages)}</dd>
          <dt>Delivered</dt>
          <dd>{ended === 0 ? '–' : `${percent(totalSuccesses / ended)} of ${count(ended)}`}</dd>
          <dt>Latency</dt>
          <dd>{avgResponseTimeMs === null ? '–' : `${duration(avgResponseTimeMs)} on average`}</dd>
          <dt>Last success</dt>
          <dd>{endpoint.lastSuccessAt === null ? '–' : <Ago at={endpoint.lastSuccessAt} />}</dd>
          <dt>Last failure</dt>
          <dd>
            {endpoint.lastFailureAt === null ? (
              '–'
            ) : (
              <>
                <EndpointFailure id={id} at={endpoint.lastFailureAt} />{' '}
                <span className="sub">
                  <Ago at={endpoint.lastFailureAt} />
                </span>
              </>
            )}
          </dd>
          <dt>Address</dt>
          <dd>{url}</dd>
          <dt>Throttle</dt>
          <dd>
            {rateLimitPerSecond === 0 ? 'none' : `${count(rateLimitPerSecond)} per second`}; an attempt has {count(timeoutSeconds)} s
          </dd>
          <dt>Retries</dt>
          <dd>{retryDelays === null ? 'as the installation has them' : delayWords(retryDelays.map((seconds) => seconds * 1000))}</dd>
          <dt>Expiry</dt>
          <dd>{expiryWords(expiresAfterSeconds)}</dd>
          {endpoint.payloadForm === 'thin' ? <ThinForm /> : null}
          {endpoint.ordered ? <Order /> : null}
          <TemplateFacts templates={endpoint.headerTemplates} />
          <dt>Success</dt>
          <dd>{successStatusCodes === null ? 'any 2xx' : successStatusCodes.join(', ')}</dd>
          <SignatureFacts signing={endpoint} isSigned />
          {endpoint.isDisabled ? (
            <>
              <dt>Disabled</dt>
              <dd>{endpoint.disabledReason ?? 'by a person'}</dd>
            </>
          ) : null}
        </dl>
      </section>
      <Subscriptions endpointId={id} />
      <MessageCauses endpointId={id} from={from} />
    </>
  );
}

function throttleWords({ mode, rateLimit, rateUnit, strict, maxConcurrency, queueLimit }: Destination['throttle']): string {
  const queue = queueLimit === null ? '' : `; at most ${count(queueLimit)} wait`;
  if (mode === 'rate') return `${count(rateLimit ?? 0)} per ${rateUnit}${strict === true ? ', never more' : ''}${queue}`;
  if (mode === 'concurrency') return `${count(maxConcurrency ?? 0)} at a time${queue}`;
  return `none${queue}`;
}

function retryWords({ maxRetries, initialDelay, maxDelay, delays }: Destination['retryPolicy']): string {
  if (delays !== null) return delayWords(delays);
  if (maxRetries === 0) return 'none';
  const last = maxRetries === 1 || initialDelay === maxDelay ? '' : ` to ${duration(maxDelay)}`;
  return `${count(maxRetries)}, after ${duration(initialDelay)}${last}`;
}

function forwardedWords(names: readonly string[] | null): string {
  if (names === null) return 'all are forwarded';
  return names.length === 0 ? 'none are forwarded' : `${names.join(', ')} forwarded, no others`;
}

function delayWords(delaysMs: readonly number[]): string {
  return `${count(delaysMs.length)}, after ${delaysMs.map(duration).join(', ')}`;
}

function useDayBegin(): string {
  const now = useNow(60_000);
  return useMemo(() => beginOf(day, now), [now]);
}
