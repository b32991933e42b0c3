import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';
import { AddressList } from '../core/address-list.ts';
import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import { OpenShares } from '../core/open-shares.ts';
import { OrganizationBudget } from '../core/organization-budget.ts';
import { leastLargeMebibytes, wholePayloadBytes } from '../core/payload-sizes.ts';
import type { Keyring } from '../core/sealing.ts';
import { SpareBuffer } from '../core/spare-buffer.ts';
import type { Intake } from '../data/intake/intake.ts';
import type { SignatureFailureLog } from '../data/intake/signature-failure-log.ts';
import type { RegistryReader } from '../data/registry/registry.ts';
import type { MessageAcceptor } from '../data/shard/messages.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { Deadlines } from './deadlines.ts';
import { type IngestLimits, limitsFor } from './limits.ts';
import { ingestMetrics } from './metrics.ts';
import { isIngestTarget } from './path.ts';
import { IngestRequest, type IngestServices } from './request.ts';

export interface IngestHandlerOptions {
  registry: RegistryReader;
  acceptor: MessageAcceptor;
  intake: Intake;
  /** Where requests are kept whose signature fails. */
  signatureFailures: Pick<SignatureFailureLog, 'note'>;
  /** Where payloads are checked against the schemas of users. */
  sandbox: Sandbox;
  keyring: Keyring;
  clock: Clock;
  logger: Logger;
  metrics: Registry;
  limits?: Partial<IngestLimits>;
  /** Limit of the installation. Default: 1 MiB. */
  maxPayloadBytes?: number;
  /** Address by which senders reach the installation. */
  publicUrl?: string | undefined;
  /** CIDRs of the proxies whose X-Forwarded-For is believed; default none. */
  trustedProxies?: readonly string[];
}

/** Takes the request when its path is `/ingest` or below, and returns whether it did. Never throws. */
export type IngestHandler = (request: IncomingMessage, response: ServerResponse) => boolean;

/** The receiving end of every source. A plain node:http handler: this is the hot path. */
export function createIngestHandler({
  metrics,
  limits,
  maxPayloadBytes = wholePayloadBytes,
  publicUrl,
  trustedProxies = [],
  ...options
}: IngestHandlerOptions): IngestHandler {
  const inForce = { ...limitsFor(maxPayloadBytes), ...limits };
  const services: IngestServices = {
    ...options,
    limits: inForce,
    maxPayloadBytes,
    metrics: ingestMetrics(metrics),
    deadlines: new Deadlines(options.clock),
    inFlight: { requests: 0 },
    shares: {
      requests: new OpenShares({ all: inForce.requestsInFlight, ofOwner: inForce.requestsOfOrganization }),
      bytes: new OpenShares({ all: inForce.bytesInFlight, ofOwner: inForce.bytesOfOrganization }),
    },
    largeBudget: new OrganizationBudget({
      places: inForce.largeMebibytes,
      placesOfOrganization: inForce.largeMebibytesOfOrganization,
      placesOfSource: inForce.largeMebibytesOfSource,
      leastPlaces: leastLargeMebibytes,
      clock: options.clock,
      waitMs: inForce.roomDeadlineMs,
    }),
    spare: new SpareBuffer(),
    publicUrl,
    trustedProxies: new AddressList(trustedProxies),
  };
  return (request, response) => {
    if (!isIngestTarget(request.url ?? '')) return false;
    void new IngestRequest(services, request, response).run();
    return true;
  };
}
