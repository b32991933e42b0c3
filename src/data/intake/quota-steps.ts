import type { Logger } from '../../core/logger.ts';
import { shardOf } from '../../core/shard-of.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { Script } from '../../redis/script.ts';
import { OwnEventLog } from '../queue/own-event-log.ts';
import { hasOwnSource } from '../registry/own-sources.ts';
import type { RegistryReader } from '../registry/registry.ts';
import { intakeKeys } from './intake-keys.ts';

/** In percent of the messages of a month. */
const steps = [80, 100] as const;

/** A step that an organization has reached in a month (`YYYY-MM`), and that was not recorded yet. */
export interface QuotaStep {
  org: string;
  month: string;
  percent: number;
  messages: number;
  limit: number;
}

/** From `untold_step()` of `includes/intake.lua`; null: there is none. */
export function quotaStep(
  [percent, messages]: readonly number[],
  { org, month, limit }: Pick<QuotaStep, 'org' | 'month'> & { limit: number | null },
): QuotaStep | null {
  return percent === undefined || messages === undefined || limit === null ? null : { org, month, percent, messages, limit };
}

interface QuotaStepsOptions {
  redis: RedisClient;
  prefix: string;
  registry: RegistryReader;
  /** How many there are. */
  shards: () => number;
  logger: Logger;
}

const recordedScript = new Script(new URL('./quota-reported.lua', import.meta.url));

/**
 * Records `quota.reached` for organizations that have a source for it. The request that reaches a step does not wait for it. A step that was not recorded, for example
 * because the process died, is recorded with the next message; a repeated record of a step is ignored.
 */
export class QuotaSteps {
  readonly #options: QuotaStepsOptions;
  readonly #notes: OwnEventLog;
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(options: QuotaStepsOptions) {
    this.#options = options;
    this.#notes = new OwnEventLog(options);
  }

  /** Resolves once the step is recorded or the attempt has failed, at once for null; never rejects. */
  reached(step: QuotaStep | null): Promise<void> {
    if (step === null) return Promise.resolve();
    const { logger } = this.#options;
    const { org, month, percent } = step;
    const key = `${org} ${month} ${percent}`;
    const telling =
      this.#underWay.get(key) ??
      this.#tell(step)
        .catch((error: unknown) =>
          logger.debug({ err: error, organization: org }, 'a quota.reached event was not published; the next message tries again'),
        )
        .finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, telling);
    return telling;
  }

  async #tell({ org, month, percent: reached, messages, limit }: QuotaStep): Promise<void> {
    const { redis, prefix, registry, shards } = this.#options;
    if (!(await hasOwnSource(registry, org))) return;
    for (const percent of steps.filter((step) => step <= reached)) {
      const number = Number(month.replace('-', '')) * 1000 + percent;
      const data = { month, percent, messages, limit };
      await this.#notes.noteOfOrganization({ org, kind: 'quotaReached', about: month, number, data }, shardOf(org, shards()));
    }
    await recordedScript.run(redis, intakeKeys(prefix, org).declared, [month, reached]);
  }
}
