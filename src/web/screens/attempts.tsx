import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import type { Answer } from '../api/client.ts';
import { CopyButton } from '../ui/copy.tsx';
import { bytes, duration } from '../ui/format.ts';
import { Panel } from '../ui/panel.tsx';
import { Preformatted } from '../ui/preformatted.tsx';
import { Code, State } from '../ui/state.tsx';
import { Clock } from '../ui/time.tsx';
import { attemptCurl, type SentTo } from './attempt-curl.ts';
import { signatureWords } from './signature-facts.tsx';

type OfDelivery = Answer<'GET /deliveries/{id}'>['attemptDetails'][number];
type OfMessage = Answer<'GET /outbound-messages/{id}/attempts'>['data'][number];

/** An attempt of a delivery or of a message. */
export interface Attempt {
  number: number;
  at: string;
  durationMs: number;
  isSuccess: boolean;
  responseStatus: number | null;
  responseBody: string | null;
  errorType: string | null;
  errorMessage: string | null;
  payloadForm: OfDelivery['payloadForm'];
  signatureScheme: OfDelivery['signatureScheme'];
  detail: OfDelivery['detail'];
}

export function ofDelivery({ attemptNumber, startedAt, ...rest }: OfDelivery): Attempt {
  return { ...rest, number: attemptNumber, at: startedAt, isSuccess: rest.errorType === null, detail: rest.detail };
}

export function ofMessage({ attemptNumber, createdAt, responseTimeMs, status, ...rest }: OfMessage): Attempt {
  return {
    ...rest,
    number: attemptNumber,
    at: createdAt,
    durationMs: responseTimeMs,
    isSuccess: status === 'success',
    detail: rest.detail,
  };
}

/** One line for each attempt. */
export function Attempts({ attempts }: { attempts: readonly Attempt[] }): ReactElement {
  if (attempts.length === 0) return <p className="muted">Nothing has been sent.</p>;
  return (
    <ol className="plain-list">
      {attempts.map(({ number, at, durationMs, isSuccess, responseStatus, errorMessage }) => (
        <li key={number}>
          <span className="row">
            <State state={isSuccess ? 'delivered' : 'failed'} word={`Attempt ${number}`} />
            <Code status={responseStatus} />
            <span className="muted">{duration(durationMs)}</span>
            <span className="spacer" />
            <Clock at={at} />
          </span>
          {errorMessage === null ? null : <p className="small muted">{errorMessage}</p>}
        </li>
      ))}
    </ol>
  );
}

/** All attempts in a row; the chosen one, and the one that it is compared with, are marked. */
export function AttemptStrip({
  attempts,
  chosen,
  other,
}: {
  attempts: readonly Attempt[];
  chosen: number | null;
  other: number | null;
}): ReactElement {
  return (
    <nav className="attempt-strip" aria-label="All attempts">
      {attempts.map(({ number, at, isSuccess, responseStatus }) => (
        <Link
          key={number}
          to="."
          search={((before: object) => ({ ...before, attempt: String(number) })) as never}
          aria-current={number === chosen || number === other ? 'true' : undefined}
        >
          <State state={isSuccess ? 'delivered' : 'failed'} word={String(number)} />
          <Code status={responseStatus} />
          <span className="dim">
            <Clock at={at} />
          </span>
        </Link>
      ))}
    </nav>
  );
}

const phases = [
  ['dnsMs', 'DNS', 'f-idle'],
  ['connectMs', 'Connect', 'f-s2'],
  ['tlsMs', 'TLS', 'f-s3'],
  ['firstByteMs', 'First byte', null],
] as const;
/** The answer has the colour of the outcome. */
const outcomeFill = ({ isSuccess }: Attempt): string => (isSuccess ? 'f-ok' : 'f-bad');
/** The wait for a connection, and the body of the answer. */
const rest = ['rest', 'Rest', 'f-line'] as const;
const swatch = 10;

/** How long each part of the attempts took, on one scale. */
export function Waterfall({ attempts }: { attempts: readonly Attempt[] }): ReactElement | null {
  const timed = attempts.filter(({ detail }) => detail !== undefined);
  if (timed.length === 0) return null;
  const hasRest = timed.some(({ detail }) => detail !== undefined && restMs(detail) > 0);
  const longestMs = Math.max(1, ...timed.map(({ detail }) => detail?.phases.totalMs ?? 0));
  const outcomes = [...new Set(timed.map(outcomeFill))];
  return (
    <div className="stack">
      <div className="waterfall" role="img" aria-label={timed.map(inWords).join(' ')}>
        {timed.map((attempt) => (
          <Bar key={attempt.number} attempt={attempt} longestMs={longestMs} />
        ))}
      </div>
      <p className="legend small">
        {[...phases, ...(hasRest ? [rest] : [])].map(([key, word, fill]) => (
          <span key={key}>
            <Swatch fills={fill === null ? outcomes : [fill]} />
            {word}
          </span>
        ))}
      </p>
    </div>
  );
}

function Swatch({ fills }: { fills: readonly string[] }): ReactElement {
  const width = swatch / fills.length;
  return (
    <svg width={swatch} height={swatch} aria-hidden="true">
      {fills.map((fill, i) => (
        <rect key={fill} x={i * width} width={width} height={swatch} className={fill} />
      ))}
    </svg>
  );
}

/** A line of the waterfall: a millisecond is a unit of the drawing, whose letters would be stretched with it. */
function Bar({ attempt, longestMs }: { attempt: Attempt; longestMs: number }): ReactElement | null {
  const { number, detail } = attempt;
  if (detail === undefined) return null;
  let x = 0;
  const bars = phases.map(([key, , fill]) => {
    const width = detail.phases[key] ?? 0;
    const bar = <rect key={key} className={fill ?? outcomeFill(attempt)} x={x} width={width} height="1" />;
    x += width;
    return bar;
  });
  return (
    <>
      <span className="medium">Attempt {number}</span>
      <svg viewBox={`0 0 ${longestMs} 1`} preserveAspectRatio="none" aria-hidden="true">
        {bars}
        <rect className="f-line" x={x} width={restMs(detail)} height="1" />
      </svg>
      <span className="end muted">{duration(detail.phases.totalMs)}</span>
    </>
  );
}

function restMs({ phases: { totalMs, ...parts } }: NonNullable<Attempt['detail']>): number {
  return Math.max(0, totalMs - phases.reduce((sum, [key]) => sum + (parts[key] ?? 0), 0));
}

function inWords({ number, detail }: Attempt): string {
  return detail === undefined ? '' : `Attempt ${number}: ${phaseWords(detail)}.`;
}

function phaseWords({ phases: times }: NonNullable<Attempt['detail']>): string {
  const parts = phases.map(([key, word]) => (times[key] === null ? `${word} not reached` : `${word} ${times[key]} ms`));
  return `${parts.join(', ')}, in all ${times.totalMs} ms`;
}

/** What was sent and what came back. `sentTo` null: where it would be sent again is not known. */
export function AttemptDetail({ attempt, sentTo }: { attempt: Attempt; sentTo: SentTo | null }): ReactElement {
  const { detail, responseBody, errorType, errorMessage, responseStatus, durationMs, payloadForm, signatureScheme } = attempt;
  return (
    <div className="cols-2">
      <Panel title="Response" hint={duration(durationMs)}>
        <div className="panel-body stack">
          <dl className="kv is-tight">
            <dt>Status</dt>
            <dd>
              <Code status={responseStatus} />
            </dd>
            {errorType === null ? null : (
              <>
                <dt>Error</dt>
                <dd>
                  <code>{errorType}</code> {errorMessage}
                </dd>
              </>
            )}
            {detail === undefined ? null : (
              <>
                <dt>From</dt>
                <dd>
                  {detail.peerAddress ?? 'no connection'}
                  {detail.reusedConnection ? <span className="sub">, on a connection that was open</span> : null}
                </dd>
                <dt>Size</dt>
                <dd>{bytes(detail.responseBytes)}</dd>
                <dt>Phases</dt>
                <dd>{phaseWords(detail)}</dd>
              </>
            )}
          </dl>
          <Headers headers={detail?.responseHeaders ?? null} isCut={detail?.headersTruncated === true} />
          {responseBody === null || responseBody === '' ? null : <Preformatted label="Response body">{responseBody}</Preformatted>}
        </div>
      </Panel>
      <Panel
        title="Request"
        hint={detail === undefined ? undefined : bytes(detail.requestBytes)}
        end={
          detail?.requestHeaders == null || sentTo === null ? null : (
            <CopyButton text={attemptCurl(detail.requestHeaders, sentTo)} label="Copy as curl" isQuiet />
          )
        }
      >
        <div className="panel-body stack">
          <dl className="kv is-tight">
            <dt>Body</dt>
            <dd>{payloadForm === 'thin' ? 'a link to the payload' : 'the payload'}</dd>
            <dt>Signatures</dt>
            <dd>{signatureScheme === null ? 'none' : signatureWords[signatureScheme]}</dd>
          </dl>
          {detail === undefined ? (
            <p className="muted">
              What was sent is kept for the first and the last two failed attempts, and for a success after a failure.{' '}
              <code>POSTHORN_ATTEMPT_DETAIL=all</code> keeps it for every attempt.
            </p>
          ) : (
            <Headers headers={detail.requestHeaders} isCut={detail.headersTruncated} />
          )}
        </div>
      </Panel>
    </div>
  );
}

function Headers({ headers, isCut }: { headers: Record<string, string> | null; isCut: boolean }): ReactElement | null {
  if (headers === null) return null;
  return (
    <>
      <dl className="kv is-tight mono">
        {Object.entries(headers).map(([name, value]) => (
          <HeaderLine key={name} name={name} value={value} />
        ))}
      </dl>
      {isCut ? <p className="small muted">Some headers were cut.</p> : null}
    </>
  );
}

function HeaderLine({ name, value }: { name: string; value: string }): ReactElement {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
