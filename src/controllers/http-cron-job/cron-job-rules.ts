import { compileCronJob } from '../../compile/cron-job.ts';
import type { ResourceRules } from '../resource-reconciler.ts';

/** A cron job refers to nothing. */
export function cronJobRules(): ResourceRules<'HttpCronJob', 'cronJob'> {
  return {
    kind: 'HttpCronJob',
    recordKind: 'cronJob',
    evaluate: async (object, organization) => compileCronJob(object, organization),
  };
}
