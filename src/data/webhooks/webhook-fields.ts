const common = { createdAtMs: 'c', updatedAtMs: 'u', revision: 'v', managedBy: 'g' } as const;
const disabling = { disabledFor: 'x', reason: 'i', disableAfterHours: 'z' } as const;

/**
 * Fields of the hashes of the webhook store (`webhook-keys.ts`), one table per hash, as `../shard/hash-fields.ts` has those of a shard. Many are the beginning of a
 * field: what they name follows.
 */
export const webhookFields = {
  /** `ctl`. */
  webhookControl: {
    /** With the letters of a kind behind it: the last number that was given out. */
    lastNumber: 'n:',
    /** Since when `past` is complete. */
    pastSinceMs: 'ps',
  },
  /** `v`; beside these the version of what matches an event, by event type id. */
  webhookVersions: {
    /** Version of what matches any event. */
    any: '*',
    /** What has changed last, of what any event matches or of an event type. */
    changesOf: 'j:',
  },
  /** `past`, beside ids. */
  webhookPast: { eventTypesOfName: 'n:' },
  /** `ls`. */
  webhookLists: { endpointsOf: 'a', subscriptionsOf: 't' },
  /** `doom`. */
  webhookDoomed: { application: 'a', endpoint: 'e', eventType: 't' },

  // Members of the JSON of records (`webhook-records.ts`).
  webhookApplication: { ...common, ...disabling, name: 'n', externalId: 'e', metadata: 'm', rateLimits: 'l', shard: 's' },
  webhookEndpoint: {
    ...common,
    ...disabling,
    url: 'a',
    description: 'd',
    headers: 'h',
    sealedHeaders: 's',
    headerTemplates: 'H',
    timeoutSeconds: 't',
    rateLimitPerSecond: 'l',
    rateLimitStrict: 'y',
    ordered: 'm',
    retryDelaysSeconds: 'r',
    expiresAfterSeconds: 'j',
    successStatusCodes: 'o',
    disabledRevision: 'xv',
    circuit: 'b',
    secret: 'k',
    secretVersion: 'w',
    previousSecrets: 'p',
    secretRotatedBy: 'q',
    signatureScheme: 'n',
    isThin: 'T',
    signingKey: 'e',
    previousSigningKeys: 'f',
  },
  webhookSubscription: {
    ...common,
    filterExpression: 'f',
    labelFilters: 'l',
    matchesAnyLabel: 'y',
    transform: 't',
    isOff: 'o',
    lastFilterError: 'r',
  },

  /** `{sent:<organization>}:<application>` (`rate-windows.lua`); the length of a window in milliseconds follows. */
  rateWindow: { messages: 'c', endMs: 'e' },
} as const;

/** What the key of a hash begins with, after `{wh:<organization>}:`. */
export const webhookHashKeys = {
  'KEYS[1]': 'webhookControl',
  v: 'webhookVersions',
  past: 'webhookPast',
  ls: 'webhookLists',
  doom: 'webhookDoomed',
} as const satisfies Record<string, keyof typeof webhookFields>;
