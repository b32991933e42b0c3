import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressList } from '../core/address-list.ts';
import { clientAddress } from '../core/client-address.ts';
import type { Clock } from '../core/clock.ts';
import { isPosthornError, PosthornError } from '../core/errors.ts';
import { EventContext } from '../core/event-context.ts';
import { hopHeader, hopOfRequest } from '../core/hops.ts';
import type { Logger } from '../core/logger.ts';
import { loopTurns } from '../core/loop-turns.ts';
import type { OpenShares } from '../core/open-shares.ts';
import type { OrganizationBudget } from '../core/organization-budget.ts';
import { wholePayloadBytes } from '../core/payload-sizes.ts';
import { isVerified, type Verification } from '../core/providers/descriptor.ts';
import { ownProvider } from '../core/providers/providers.ts';
import type { SignatureFailure } from '../core/providers/signature-failure.ts';
import { requestFormat } from '../core/readable-payload.ts';
import { requestIdFor } from '../core/request-id.ts';
import { maxQueryLength, queryOf } from '../core/sent-query.ts';
import type { SpareBuffer } from '../core/spare-buffer.ts';
import { setRateLimitHeaders } from '../data/intake/rate-limit.ts';
import type { SignatureFailureLog } from '../data/intake/signature-failure-log.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { answerAccepted, answerError, answerHandshake, answerQuestion } from './answer.ts';
import { ArrivingBody, hungUp, overloaded, overShare, type Waits } from './arriving-body.ts';
import { type BrokenSchemas, brokenSchemas, noBrokenSchemas } from './broken-schemas.ts';
import type { Deadlines, Expirable } from './deadlines.ts';
import { notBeforeOfHeaders } from './delivery-time-headers.ts';
import { sentExpirySeconds } from './expiry-header.ts';
import { handshakeAnswer, isProbe } from './handshake.ts';
import { type IngestPlan, ingestPlan, type PlanServices } from './ingest-plan.ts';
import { evaluateLarge } from './large-event.ts';
import type { IngestLimits } from './limits.ts';
import type { IngestMetrics, IngestOutcome } from './metrics.ts';
import { type HandshakeAnswer, type HandshakeReply, isSignedForAnyone } from './query-handshake.ts';
import type { LargeEvaluation, ReceivedRequest } from './received-request.ts';
import { SigningSecretsUnreadable } from './source-verifier.ts';
import { type TakingServices, takeEvent } from './take-event.ts';

export interface IngestServices extends PlanServices, TakingServices {
  sandbox: Sandbox;
  clock: Clock;
  logger: Logger;
  /** Where requests are kept whose signature fails. */
  signatureFailures: Pick<SignatureFailureLog, 'note'>;
  limits: IngestLimits;
  /** Limit of the installation. */
  maxPayloadBytes: number;
  metrics: IngestMetrics;
  deadlines: Deadlines;
  inFlight: { requests: number };
  /** Shares of each organization, and of its sources. */
  shares: { requests: OpenShares; bytes: OpenShares };
  largeBudget: OrganizationBudget;
  spare: SpareBuffer;
  /** Address by which senders reach the installation, if it is configured; some providers sign it. */
  publicUrl: string | undefined;
  /** Proxies whose X-Forwarded-For is believed. */
  trustedProxies: AddressList;
}

const pathPattern = /^\/ingest\/([a-z0-9][a-z0-9-]{0,62})\/([a-z0-9][a-z0-9-]{0,62})\/?(?:\?|$)/;

type SignatureCheck = Pick<ReceivedRequest, 'signatureValid' | 'signed'>;
const unsigned: SignatureCheck = { signatureValid: null, signed: null };

/** One request, from its head to its answer. */
export class IngestRequest implements Expirable, Waits {
  deadlineTick = 0;
  readonly #services: IngestServices;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #requestId: string;
  readonly #startedMs = performance.now();
  #body: ArrivingBody | null = null;
  /** The owner of its slots. */
  #source: IngestPlan['source'] | null = null;
  /** Made for what waits for its end, which most requests do not have. */
  #ending: AbortController | null = null;
  #stage: 'plan' | 'room' | 'body' | 'check' | 'store' | 'over' = 'plan';

  constructor(services: IngestServices, request: IncomingMessage, response: ServerResponse) {
    this.#services = services;
    this.#request = request;
    this.#response = response;
    this.#requestId = requestIdFor(request.headers['x-request-id']);
  }

  /** Never rejects. */
  async run(): Promise<void> {
    const { inFlight } = this.#services;
    inFlight.requests += 1;
    try {
      await this.#take();
    } catch (thrown) {
      this.#fail(thrown);
    } finally {
      inFlight.requests -= 1;
      this.#body?.giveBack();
      if (this.#source !== null) this.#services.shares.requests.giveBack(this.#source.org, 1, this.#source.id);
    }
  }

  #takeShare(source: IngestPlan['source']): void {
    if (!this.#services.shares.requests.take(source.org, 1, source.id)) throw overShare();
    this.#source = source;
  }

  /** It is answered, or the sender is gone. */
  get aborted(): boolean {
    return this.#isOver();
  }

  /** A deadline has passed: answers at once, whatever the stage still waits for. */
  expire(): void {
    switch (this.#stage) {
      case 'plan':
      case 'room':
      case 'check':
      case 'store':
        this.#fail(
          new PosthornError('UNAVAILABLE', 'The event could not be stored in time; please send it again', { retryAfterSeconds: 1 }),
        );
        break;
      case 'body':
        this.#fail(new PosthornError('REQUEST_TIMEOUT', 'The body did not arrive in time'));
        break;
      case 'over':
        this.#request.socket.destroy();
    }
  }

  async #take(): Promise<void> {
    const { clock, deadlines, inFlight, limits } = this.#services;
    const [, orgSlug, sourceSlug] = pathPattern.exec(this.#request.url ?? '') ?? [];
    if (orgSlug === undefined || sourceSlug === undefined) throw new PosthornError('NOT_FOUND', 'There is no such source');
    if (inFlight.requests > limits.requestsInFlight) throw overloaded();
    deadlines.set(this, limits.planDeadlineMs);
    const plan = await this.#plan(orgSlug, sourceSlug);
    if (this.#isOver()) return;
    this.#takeShare(plan.source);
    const query = queryOf(this.#request.url ?? '');
    const asked = this.#checkHead(plan, query);
    if (asked === 'probe') return this.#endHandshake(null);
    const { rateLimitPerMinute } = plan.source;
    if (rateLimitPerMinute !== undefined) await this.#countAgainstLimit(plan, rateLimitPerMinute);
    if (this.#isOver()) return;
    if (asked !== 'event') return this.#endQuestion(asked());
    if (query.length > maxQueryLength) throw new PosthornError('URI_TOO_LONG', `The query is longer than ${maxQueryLength} characters`);
    const expiresAfterSeconds = sentExpirySeconds(this.#request.headers);
    const body = await this.#readBody(this.#payloadLimit(plan), plan.source);
    if (this.#isOver()) return;
    const receivedAtMs = clock.now();
    const { signatureValid, signed } = plan.verify === null ? unsigned : await this.#checkSignature(plan, plan.verify, body, receivedAtMs);
    if (this.#isOver()) return;
    const notBeforeMs = notBeforeOfHeaders(this.#request.headers, receivedAtMs);
    const handshake = signatureValid === false ? null : handshakeAnswer(plan.source.provider, body);
    if (handshake !== null) return this.#endHandshake(handshake);
    const sent = new EventContext(this.#request.headers, body, query);
    const evaluated =
      this.#mayBeLarge(body) && (await this.#isEvaluatedElsewhere(plan, body, sent))
        ? await this.#evaluateElsewhere(plan, { body, query, signed })
        : null;
    if (this.#isOver()) return;
    const context = evaluated === null ? sent : new EventContext(this.#request.headers, body, query, evaluated.document);
    const broken = plan.schemas.length === 0 ? noBrokenSchemas : await this.#checkSchemas(plan, context, evaluated === null ? null : body);
    if (this.#isOver()) return;
    this.#stage = 'store';
    deadlines.set(this, body.length > wholePayloadBytes ? limits.storeLargeDeadlineMs : limits.storeDeadlineMs);
    const received = {
      request: this.#request,
      body,
      query,
      receivedAtMs,
      notBeforeMs,
      expiresAfterSeconds,
      signatureValid,
      signed,
      ...(evaluated !== null && { evaluated }),
    };
    const { eventId, isDuplicate } = await takeEvent(this.#services, plan, { received, context, broken }, this);
    if (this.#isOver()) return;
    this.#body?.free();
    this.#end(isDuplicate ? 'duplicate' : 'accepted');
    answerAccepted(this.#response, this.#requestId, eventId, isDuplicate);
  }

  async #plan(orgSlug: string, sourceSlug: string): Promise<IngestPlan> {
    try {
      return await ingestPlan(this.#services, orgSlug, sourceSlug);
    } catch (thrown) {
      if (thrown instanceof SigningSecretsUnreadable) this.#noteFailure(thrown.source, thrown.failure, true);
      throw thrown;
    }
  }

  #isOver(): boolean {
    return this.#stage === 'over';
  }

  #checkHead({ source, mayReceiveFrom, handshake }: IngestPlan, query: string): 'probe' | HandshakeAnswer | 'event' {
    const { method = '', headers } = this.#request;
    if (!source.enabled) throw new PosthornError('SOURCE_DISABLED', 'The source is disabled');
    if (source.provider === ownProvider) throw new PosthornError('FORBIDDEN', "The source receives Posthorn's own events only");
    if (mayReceiveFrom !== null && !mayReceiveFrom(this.#senderAddress()))
      throw new PosthornError('IP_NOT_ALLOWED', 'The source does not take events from this address');
    if (isProbe(source.provider, method)) return 'probe';
    const answer = handshake?.(this.#request, query) ?? null;
    if (answer !== null) return answer;
    if (!source.allowedMethods.includes(method)) {
      this.#response.setHeader('Allow', source.allowedMethods.join(', '));
      throw new PosthornError('METHOD_NOT_ALLOWED', `The source does not take ${method}`);
    }
    hopOfRequest(headers[hopHeader]);
    return 'event';
  }

  #senderAddress(): string {
    const { headers, socket } = this.#request;
    return clientAddress(socket.remoteAddress ?? '', headers['x-forwarded-for'], this.#services.trustedProxies);
  }

  async #countAgainstLimit({ source }: IngestPlan, limit: number): Promise<void> {
    const state = await this.#services.intake.takeRequest(source.id, limit);
    if (this.#isOver()) return;
    setRateLimitHeaders(this.#response, state);
    const { allowed, retryAfterSeconds } = state;
    if (!allowed) throw new PosthornError('RATE_LIMITED', `The source takes ${limit} requests in a minute`, { retryAfterSeconds });
  }

  /** Limits of the organization and the installation. */
  #payloadLimit({ source: { payloadLimitBytes, largePayloadLimitBytes = payloadLimitBytes } }: IngestPlan): number {
    return Math.min(largePayloadLimitBytes, this.#services.maxPayloadBytes);
  }

  /** Whether the payload may be above 1 MiB, as it is or without its content coding. */
  #mayBeLarge(body: Buffer): boolean {
    if (body.length > wholePayloadBytes) return true;
    return this.#services.maxPayloadBytes > wholePayloadBytes && this.#request.headers['content-encoding'] !== undefined;
  }

  /** Whether the sandbox reads a payload that may be large: one above 1 MiB, also when it has so much without its content coding only. */
  async #isEvaluatedElsewhere({ source, routes, schemas, dedup }: IngestPlan, body: Buffer, context: EventContext): Promise<boolean> {
    if (body.length > wholePayloadBytes) return true;
    if (schemas.length === 0 && dedup === null && !routes.some(({ filter }) => filter?.readsPayload === true)) return false;
    await loopTurns.of(source.org, source.id).runShort(context.decode(), this);
    return context.isTooLarge;
  }

  async #evaluateElsewhere(plan: IngestPlan, received: Pick<ReceivedRequest, 'body' | 'query' | 'signed'>): Promise<LargeEvaluation> {
    this.#beginCheck();
    const { headers } = this.#request;
    return await evaluateLarge(this.#services.sandbox, plan, { headers, ...received }, plan.dedup?.fields(received) ?? [], this.signal);
  }

  /** `judgedBody`: that of a payload that is not read here. */
  async #checkSchemas(plan: IngestPlan, context: EventContext, judgedBody: Buffer | null): Promise<BrokenSchemas> {
    this.#beginCheck();
    const checked =
      judgedBody === null
        ? { body: await loopTurns.of(plan.source.org, plan.source.id).runShort(context.decode(), this), format: null }
        : { body: judgedBody, format: requestFormat(context.headers) };
    return await brokenSchemas(this.#services.sandbox, plan, checked, this.signal);
  }

  #beginCheck(): void {
    const { deadlines, limits } = this.#services;
    this.#stage = 'check';
    deadlines.set(this, limits.checkDeadlineMs);
  }

  get signal(): AbortSignal {
    this.#ending ??= new AbortController();
    return this.#ending.signal;
  }

  #endHandshake(answer: object | null): void {
    this.#end('handshake');
    answerHandshake(this.#response, this.#requestId, answer);
    this.#drain();
  }

  #endQuestion(reply: HandshakeReply): void {
    this.#end('handshake');
    answerQuestion(this.#response, this.#requestId, reply);
    this.#drain();
  }

  async #checkSignature(
    { source }: IngestPlan,
    verify: NonNullable<IngestPlan['verify']>,
    body: Buffer,
    nowMs: number,
  ): Promise<SignatureCheck> {
    const { headers, url: path = '' } = this.#request;
    const signed = { organization: source.org, source: source.id, headers, body, nowMs, path, publicUrl: this.#services.publicUrl };
    const pieces = isSignedForAnyone(source, body) ? null : verify(signed);
    const result: Verification | SignatureFailure =
      pieces === null ? { reason: 'body_is_handshake_token' } : await loopTurns.of(source.org, source.id).runShort(pieces, this);
    if (isVerified(result)) return { signatureValid: true, signed: result.signed };
    this.#noteFailure(source, result, source.rejectInvalidSignatures);
    if (source.rejectInvalidSignatures) throw new PosthornError('INVALID_SIGNATURE', 'The signature is missing or wrong');
    return { signatureValid: false, signed: null };
  }

  /** For those who set the source up: the response to the sender does not contain it. */
  #noteFailure(source: IngestPlan['source'], failure: SignatureFailure, isRefused: boolean): void {
    this.#services.metrics.signatureFailures.inc({ reason: failure.reason });
    const request = { isRefused, address: this.#senderAddress(), userAgent: this.#request.headers['user-agent'] };
    this.#services.signatureFailures.note(source, failure, request);
  }

  #readBody(limitBytes: number, { org, id }: IngestPlan['source']): Promise<Buffer> {
    this.#body = new ArrivingBody(this.#services, this.#request, { org, source: id, limitBytes });
    this.reads();
    return this.#body.read(this);
  }

  /** The budget of memory answers a sender that waits there before that. */
  waitsForBudget(): void {
    const { deadlines, limits } = this.#services;
    this.#stage = 'room';
    deadlines.set(this, limits.roomDeadlineMs + limits.bodyDeadlineMs);
  }

  reads(): void {
    if (this.#isOver()) return;
    const { deadlines, limits } = this.#services;
    this.#stage = 'body';
    deadlines.set(this, limits.bodyDeadlineMs);
  }

  #fail(thrown: unknown): void {
    if (this.#isOver()) return;
    if (thrown === hungUp) {
      this.#end('aborted');
      return;
    }
    const error = isPosthornError(thrown) ? thrown : new PosthornError('INTERNAL', 'The event could not be taken', { cause: thrown });
    const where = { requestId: this.#requestId, path: this.#request.url?.split('?', 1)[0] };
    if (error.code === 'INTERNAL')
      this.#services.logger.error({ err: thrown, ...where }, 'an ingest request failed with an internal error');
    else this.#services.logger.debug({ code: error.code, ...where }, 'an ingest request was refused');
    this.#end(error.code);
    if (this.#response.headersSent) return;
    answerError(
      this.#response,
      this.#requestId,
      error.code === 'INTERNAL' ? new PosthornError('INTERNAL', 'The event could not be taken') : error,
    );
    this.#drain();
  }

  #end(outcome: IngestOutcome): void {
    const { deadlines, metrics } = this.#services;
    this.#stage = 'over';
    this.#body?.stop();
    this.#ending?.abort();
    deadlines.clear(this);
    metrics.requests.inc({ outcome });
    if (outcome !== 'accepted') return;
    metrics.durationSeconds.observe((performance.now() - this.#startedMs) / 1000);
    metrics.payloadBytes.inc(this.#body?.size ?? 0);
  }

  /**
   * The rest of a refused body is read and discarded, so that the sender gets the response instead of a reset connection,
   * but not for ever.
   */
  #drain(): void {
    const { deadlines, limits } = this.#services;
    if (this.#request.complete) return;
    this.#request.resume();
    this.#request.on('error', () => {});
    this.#request.once('close', () => deadlines.clear(this));
    deadlines.set(this, limits.drainDeadlineMs);
  }
}
