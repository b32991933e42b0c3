import { compileCronJob } from '../../compile/cron-job.ts';
import type { Keyring } from '../../core/sealing.ts';
import { readHeaders } from '../header-values.ts';
import type { ResourceRules } from '../resource-reconciler.ts';

/** Reads the header values of a cron job and compiles its record. */
export function cronJobRules(keyring: Keyring): ResourceRules<'HttpCronJob'> {
  return {
    kind: 'HttpCronJob',
    evaluate: async (object, organization, published, secrets) => {
      const { headers, unresolved } = await readHeaders(object.spec.headers, secrets);
      if (unresolved !== undefined) return { unresolved };
      const compiled = compileCronJob(object, {
        organization,
        headers,
        keyring,
        published: headers.some(({ isSecret }) => isSecret) ? await published() : null,
      });
      return { ...compiled, outgoing: compiled.record && { at: 'spec.url', to: object.spec.url } };
    },
  };
}
