import { withJitter } from '../../core/backoff.ts';
import type { Clock } from '../../core/clock.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import type { Target } from '../../data/queue/delivery-queue.ts';
import type { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import { changedTarget, type WebhookTarget } from '../../data/webhooks/webhook-notes.ts';
import { applicationLimiter, type WebhookPlanSources } from '../plans/webhook-plan.ts';
import type { ShardSignals } from './shard-signals.ts';
import type { TargetConfigSync } from './target-config-sync.ts';

/** Changes are processed together. */
const gatherMs = 200;
const retryMs = 2000;
const endpointsPerStep = 200;
/** More are found by a review of the paused ones, or when their next message is due. */
const maxGathered = 10_000;

export interface EndpointConfigSyncOptions {
  shard: number;
  queue: RedisDeliveryQueue;
  keeper: TargetConfigSync;
  directory: WebhookPlanSources['directory'];
  clock: Clock;
  /** Where it reports what it has left to do in the shard. */
  signals: ShardSignals;
}

/**
 * Synchronizes the settings of webhook endpoints and applications in a shard with their records, where messages wait: pauses, limits of applications, and
 * queues of deleted endpoints, which become dead letters.
 */
export class EndpointConfigSync {
  readonly #options: EndpointConfigSyncOptions;
  #changed = new Map<string, WebhookTarget>();
  #isReviewing = false;
  #cancelReview: (() => void) | null = null;
  #unsubscribe: () => void = () => {};
  #isStopped = false;

  constructor(options: EndpointConfigSyncOptions) {
    this.#options = options;
  }

  start(): void {
    this.#unsubscribe = this.#options.directory.onChange((changeKey) => {
      if (changeKey === '*') return this.#options.keeper.reviewAll();
      const target = changedTarget(changeKey);
      if (target === null) return;
      this.#note(target);
      this.#reviewIn(gatherMs);
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#unsubscribe();
    this.#cancelReview?.();
  }

  #note(target: WebhookTarget): void {
    if (this.#changed.size < maxGathered) this.#changed.set(`${target.applicationId} ${target.endpointId}`, target);
  }

  #reviewIn(ms: number): void {
    if (this.#isStopped || this.#isReviewing || this.#cancelReview !== null) return;
    this.#cancelReview = this.#options.clock.after(ms, () => {
      this.#cancelReview = null;
      void this.#review();
    });
  }

  async #review(): Promise<void> {
    this.#isReviewing = true;
    let waitMs = gatherMs;
    const changed = [...this.#changed.values()];
    this.#changed = new Map();
    try {
      await this.#reviewEndpoints(changed);
      await this.#reviewApplications(changed.filter(({ endpointId }) => endpointId === null));
    } catch {
      // Redis is down, which the worker reports.
      for (const target of changed) this.#note(target);
      waitMs = withJitter(retryMs);
    } finally {
      this.#isReviewing = false;
      if (this.#changed.size > 0) this.#reviewIn(waitMs);
    }
  }

  async #reviewEndpoints(changed: readonly WebhookTarget[]): Promise<void> {
    const { queue, keeper } = this.#options;
    const names = changed.flatMap(({ org, applicationId: routeId, endpointId: destinationId }) =>
      destinationId === null ? [] : [{ org: webhookOrganization(org), routeId, destinationId }],
    );
    for (let first = 0; first < names.length; first += endpointsPerStep) {
      const step = names.slice(first, first + endpointsPerStep);
      for (const target of await queue.targetsWithWork(step)) await keeper.configure(target);
    }
  }

  async #reviewApplications(changed: readonly WebhookTarget[]): Promise<void> {
    const { queue, keeper } = this.#options;
    const gone = new Map<string, string[]>();
    for (const { org, applicationId } of changed) {
      if (await this.#limit(org, applicationId)) continue;
      gone.set(org, [...(gone.get(org) ?? []), applicationId]);
    }
    for (const [org, ids] of gone) {
      for (let cursor: string | null = '0'; cursor !== null; ) {
        const step: { targets: Target[]; next: string | null } = await queue.targetsOfRoutes(webhookOrganization(org), ids, cursor);
        for (const target of step.targets) await keeper.configure(target);
        cursor = step.next;
      }
    }
    // Endpoints of a re-enabled one may resume.
    if (changed.length > 0) keeper.review();
  }

  /** Puts the limits of an application in force; returns whether it is there. */
  async #limit(org: string, id: string): Promise<boolean> {
    const { queue, directory, shard, signals } = this.#options;
    const application = await directory.application(org, id);
    if (application === null || application.shard === shard) {
      signals.report(await queue.configureShared(id, application === null ? null : applicationLimiter(application)));
    }
    return application !== null;
  }
}
