import type { Keyring } from '../../core/sealing.ts';
import { webhookHeaderSealingContext, webhookSecretSealingContext } from '../../core/sealing-contexts.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { rewriteHash } from '../../redis/rewrite-hash.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { registryKeys } from '../registry/registry-keys.ts';
import { webhookId } from './webhook-ids.ts';
import { webhookKeys } from './webhook-keys.ts';
import { decodeEndpoint, encodeEndpoint } from './webhook-records.ts';
import { recordParts, withJson } from './webhook-rows.ts';

/**
 * Seals the signing secrets, signing keys and sealed headers of all webhook endpoints under the newest key. Readers need no notice: they open the old envelopes, too, for as long
 * as they have the old key, and read all endpoints again when they lose it. `report` gets what does not open. Returns how many endpoints changed.
 */
export async function resealWebhooks(options: {
  redis: RedisClient;
  prefix: string;
  keyring: Keyring;
  report: (complaint: string) => void;
}): Promise<number> {
  const { redis, prefix, keyring, report } = options;
  let changed = 0;
  for (const org of await redis.hkeys(registryKeys(prefix).records('organization')).catch(throwUnavailable)) {
    changed += await rewriteHash(redis, webhookKeys(prefix, org).endpoints, (number, record) => {
      const { part, json } = recordParts(record);
      const id = webhookId('endpoint', Number(number), part);
      const endpoint = decodeEndpoint(json);
      const reseal = (sealed: string, context = webhookSecretSealingContext(org, id)): string => {
        try {
          return keyring.reseal(sealed, context);
        } catch (error) {
          report(`webhookEndpoint ${id}: ${context.field} does not open: ${error instanceof Error ? error.message : error}`);
          return sealed;
        }
      };
      const resealedAll = <T extends { sealed: string; previous: { sealed: string }[] }>(secret: T): T => ({
        ...secret,
        sealed: reseal(secret.sealed),
        previous: secret.previous.map((old) => ({ ...old, sealed: reseal(old.sealed) })),
      });
      const secret = resealedAll(endpoint.secret);
      const signingKey = endpoint.signingKey && resealedAll(endpoint.signingKey);
      const headers = endpoint.headers.map((header) =>
        header.sealed === undefined ? header : { name: header.name, sealed: reseal(header.sealed, webhookHeaderSealingContext(org, id)) },
      );
      const resealed = withJson(record, encodeEndpoint({ ...endpoint, headers, secret, signingKey }));
      return resealed === record ? null : resealed;
    });
  }
  return changed;
}
