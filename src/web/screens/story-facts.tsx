import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { IdLink } from '../app/names.tsx';
import { useOrganization } from '../app/use-api.ts';
import { shortId } from '../ui/format.ts';
import { Clock } from '../ui/time.tsx';
import { CancellationFacts } from './cancel.tsx';

/** Rows of a list of facts: the event of a delivery, its route, and its destination if it has one. */
export function DeliveryEnds({ of }: { of: { eventId: string; routeId: string; destinationId: string | null } }): ReactElement {
  const org = useOrganization();
  return (
    <>
      <dt>Event</dt>
      <dd>
        <Link className="id" to="/o/$org/events/$id" params={{ org, id: of.eventId }}>
          {shortId(of.eventId)}
        </Link>
      </dd>
      <dt>Route</dt>
      <dd>
        <IdLink id={of.routeId} />
      </dd>
      {of.destinationId === null ? null : (
        <>
          <dt>Destination</dt>
          <dd>
            <IdLink id={of.destinationId} />
          </dd>
        </>
      )}
    </>
  );
}

interface Progress {
  attempts: number;
  maxAttempts: number;
  createdAt: string;
  expiresAt: string | null;
  cancellation?: { at: string; by: string };
}

/** Rows of a list of facts: how far a delivery or message is. */
export function ProgressFacts({ of }: { of: Progress }): ReactElement {
  return (
    <>
      <dt>Attempts</dt>
      <dd>
        {of.attempts} of {of.maxAttempts}
      </dd>
      <dt>Created</dt>
      <dd>
        <Clock at={of.createdAt} />
      </dd>
      {of.expiresAt === null ? null : (
        <>
          <dt>Expires</dt>
          <dd>
            <Clock at={of.expiresAt} />
          </dd>
        </>
      )}
      <CancellationFacts made={of.cancellation} />
    </>
  );
}
