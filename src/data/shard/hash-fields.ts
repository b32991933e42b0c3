/**
 * Fields of the hashes of a shard (`shard-keys.ts`) and of the entries of its streams, one table per hash or stream. Redis has the short name, to save memory; code uses the word: TypeScript
 * `hashFields.target.circuitState`, a script `F.target.circuit_state`, which `ShardScript` replaces when it loads the script. `node hack/check-lua.ts` refuses
 * words without a field, and short names in calls whose hash it can infer.
 */
export const hashFields = {
  /** `m:<message>`, `m:<batch>` and `m:<pack>`; attempts in their short form have their numbers 1, 2, … as fields. */
  message: {
    event: 'e',
    target: 't',
    /** Letter (`../history/message-view.ts`). */
    status: 's',
    /** Attempts made. */
    attempts: 'n',
    maxAttempts: 'x',
    indexStamp: 'i',
    /** When the next attempt is due. */
    dueMs: 'd',
    /** Stamp of its entry in the history, `<ms>-<number>`. */
    endStamp: 'c',
    deadLetterReason: 'q',
    /** The message of which it is the replay. */
    replayOf: 'rp',
    /** Number of replays of a dead letter, and when it was replayed last. */
    replays: 'dr',
    /** End stamp that an archived dead letter had. */
    archivedEndStamp: 'dc',
    /** Subscription of a message to a webhook endpoint. */
    subscription: 'sb',
    /** Transform of that subscription. */
    transform: 'tf',
    unsentReason: 'fm',
    /** Error type of a dead letter that no attempt explains. */
    endErrorType: 'er',
    /** `<ms> <who>` (`../queue/includes/cancelled.lua`). */
    cancellation: 'cx',
    expiresMs: 'xp',
    /** Entry in a lane, as `<lane>/<entry>`, of a message that expires; empty: it is in none (`../queue/includes/expiry.lua`). */
    laneEntry: 'le',
    /** The output of its transform is kept. */
    hasOutput: 'y',
    /** Bytes of the attempts in their long form that have a short one, too (`../queue/includes/attempt-details.lua`). */
    detailBytes: 'ad',
    /** Batch of which it is a member (`includes/batch.lua`). */
    batch: 'bt',

    // of one that failed over (`../queue/includes/failover.lua`)
    /** Number of the first target of one that is not there. */
    firstTarget: 'o',
    /** First destination of one that came from another shard. */
    firstDestination: 'od',
    /** Attempts made elsewhere, which do not count here. */
    attemptsBeforeMove: 'k',
    moveReason: 'w',
    /** Stamp of its entry in the index of the destination where it is now. */
    moveStamp: 'j',
    /** The other shard where it is, or to which it is on its way. */
    shard: 'u',
    outboxEntry: 'v',
    /** How often it has moved. */
    moves: 'h',
    /** Failover destinations that it has left, with `~` before one that made no attempt. */
    left: 'hv',
    /** Attempts made at its first destination when it left that; 1000 where that allows no further one. */
    attemptsAtFirst: 'ha',

    // of a batch (`includes/batch.lua`)
    /** 1: a member came from another destination; 0: none did. */
    hasGuests: 'bg',
    /** How it has ended: `d` delivered, `q` dead letters, `f` moved to a failover destination. */
    batchEnd: 'how',
    batchEndReason: 'why',
    batchMovesTo: 'to',
    /** Where in its text the first member begins that has not followed its end. */
    batchPosition: 'at',

    // of a pack (`includes/packed.lua`)
    packOrganization: 'po',
    packCount: 'pn',
    packText: 'pk',
  },
  /** `t:<target>` (`includes/target.lua`). */
  target: {
    organization: 'o',
    route: 'r',
    /** Its limiter, too. */
    destination: 'd',
    /** Revision of the setting in force. */
    revision: 'g',
    finishTag: 'f',
    /** Mean duration of its attempts. */
    meanMs: 'a',
    /** Since when attempts are under way. */
    busySinceMs: 'u',
    /** 1: by a release that stored no time. */
    pausedSinceMs: 'p',
    /** Why it is paused or does not serve (`waits.ts`). */
    pausedFor: 'pw',
    priority: 'pr',
    /** Its route has alerts. */
    hasAlerts: 'al',
    /** Its organization receives Posthorn's own events (`../queue/includes/own-events.lua`). */
    hasOwnEvents: 'oe',
    /** The last recorded state of the endpoint's coming disabling and of its disabling (`../queue/own-endpoint-event.lua`). */
    notedDisabling: 'ow',
    notedDisabled: 'od',
    /** See `includes/target.lua`. */
    blockedBy: 'b',
    hasRetryLane: 'rl',
    /** Its newest failed attempts (`../queue/includes/failures.lua`). */
    recentFailures: 'rf',
    /** The application whose limiter it shares (`../queue/includes/shared-limiter.lua`). */
    sharedLimiter: 'lp',
    /** 1: its messages go out in order (`includes/order.lua`). */
    inOrder: 'io',

    // of its circuit (`../queue/includes/circuit.lua`)
    /** `o` open, `h` half-open; absent: closed. */
    circuitState: 'cs',
    circuitGeneration: 'cg',
    circuitBeganMs: 'ca',
    outageBeganMs: 'co',
    cooldownEndMs: 'cu',
    consecutiveFailures: 'cn',
    successfulProbes: 'cp',
    /** Begin of the ramp after the circuit closed. */
    rampBeganMs: 'cr',
    lastFailureMs: 'cf',
    lastSuccessMs: 'cl',
    /** Consecutive failures that open it. */
    failureThreshold: 'st',
    cooldownMs: 'sc',
    /** Successful probes that close it. */
    successThreshold: 'sp',

    // of its batches (`includes/batch.lua`)
    /** Layout of their objects; absent: messages go out one by one. */
    batchLayout: 'bt',
    batchRecords: 'bn',
    batchBytes: 'bb',
    batchAgeMs: 'ba',
    /** The last entry that was counted, and the bytes up to it. */
    batchCountedEntry: 'bl',
    batchCountedBytes: 'bs',

    // of its failover (`../queue/includes/failover.lua`)
    /** Targets that come after it, in order: numbers or, in another shard, `<shard>/<destination>`. */
    failoverTargets: 'fo',
    /** Destinations of the route's list that did not serve when the target was configured. */
    failoverAwaited: 'fw',
    /** Failed attempts after which a message moves; absent: when the retries are used up. */
    failoverAfter: 'fa',
    /** Whose messages move on because it does not serve: `a` all, `g` its guests. */
    movesOn: 'mv',
    /** Last entries of its lanes that were checked for guests (`../queue/includes/guests.lua`). */
    seenFreshEntry: 'gl',
    seenRetryEntry: 'gr',
  },
  /** `l:<limiter>` (`../queue/includes/limiter.lua`); absent: unlimited. */
  limiter: {
    /** Emission interval of the rate, and its burst. */
    emissionUs: 'e',
    burst: 'u',
    /** Largest concurrency. */
    concurrency: 'c',
    /** How many messages the queues of its targets hold together. */
    maxQueued: 'q',
    targets: 't',
    /** Windows of a limiter that targets share (`../queue/includes/shared-limiter.lua`): `<ms> <largest number> …`, and their revision. */
    windows: 'w',
    windowsRevision: 'v',
  },
  /** `o:<organization>`. */
  organization: {
    /** Virtual clock among its targets. */
    clock: 'c',
    /** Finish tag among organizations. */
    finishTag: 'f',
    /** Suffix of another pool than the default one (`includes/pools.lua`). */
    pool: 'pl',
  },
  /** `ar:<organization>` (`../queue/includes/archive.lua`). */
  archive: {
    /** The last stamp that is written. */
    writtenStamp: 'p',
    /** ULID, last stamp, layout and destination of the batch that is to be written now. */
    batch: 'b',
    batchLastStamp: 'l',
    batchLayout: 'y',
    batchDestination: 'd',
    /** About how many entries wait. */
    waiting: 'k',
    /** Until when a worker writes. */
    leaseEndMs: 'u',
    /** Failures in a row, since when, and the last one. */
    failures: 'f',
    failingSinceMs: 'fs',
    lastError: 'e',
    /** Messages that were removed unwritten, and when last. */
    lost: 'x',
    lastLossMs: 'xa',
  },
  /** `al:<route>` (`../alerts/alerts.lua`): alerts that wait, by kind. */
  alerts: { failed: 'f', succeeded: 's', recovered: 'r', opened: 'o', closed: 'c' },
  /** What else the same hash has. */
  alertState: {
    organization: 'org',
    /** With a destination behind it: failures in a row and the time of the first one; it was worth an alert; its circuit is open. */
    failuresOf: 'n:',
    alertedOf: 'a:',
    openCircuitOf: 'o:',
    /** One of those that were broken has left the route, and nothing was delivered since. */
    departedBroken: 'g',
    /** With a shard behind it: the entry of its log up to which all are counted, and the time of that entry. */
    positionOf: 'p',
    positionTimeOf: 't',
    /** Behind the letter of an alert: the end of its window, and what is to be sent. */
    windowEnd: 'w',
    sending: 'x',
    /** With a channel behind it: the key of an incident that is open there, and of one that is to be closed. */
    incidentOf: 'i:',
    closingOf: 'z:',
  },
  /** `oe:<organization>` (`../queue/includes/own-events.lua`): recorded events, by kind; with `?` behind it at targets that no worker has configured. */
  ownEvents: {
    dead: 'q',
    opened: 'o',
    closed: 'c',
    disabled: 'd',
    disabling: 'w',
    replayFinished: 'r',
    quotaReached: 'm',
    secretRotated: 's',
    /** The last recorded month and step. */
    notedQuota: 'mn',
  },
  /** Data behind the number of a target, or behind an id, in a field of a tally (`includes/count.lua`). */
  tally: {
    /** Also how many of an error or a reason. */
    events: 'e',
    /** Filtered or repeated events. */
    heldBack: 'x',
    /** Deliveries that failed before they were sent. */
    unsent: 'u',
    /** Messages made for webhook endpoints. */
    made: 'n',
    /** Sum of the durations of attempts. */
    durationMs: 's',
    /** With the bucket of its latency behind it: an attempt that delivered, and any other. */
    delivered: 'd',
    notDelivered: 'a',
    /** Failed attempts after which another one was planned. */
    retried: 'r',
    circuitOpenings: 'c',
    deliveredInBatch: 'o',
    failed: 'f',
    /** Moved to a failover destination after they had failed here. */
    moved: 'm',
  },
  /** `q:<organization>`: how many dead letters there are of a reason, and of a destination, whose name follows. */
  deadLetters: { ofReason: 'r ', ofDestination: 'd ' },
  /** `st:<period>:b` (`../queue/sample-backlogs.lua`), beside sums by target. */
  backlogs: { samples: 'n' },
  /** Entries of the work streams `w:<lane>`, of the indexes `i:…`, and of the histories `fin`, `fin:<organization>` and `dead`: what each is about. */
  entry: { message: 'i', event: 'e' },
  /** `ctl` of a shard; also `cancelled destination`, `expired endpoint` and the like: how many messages ended so (`../queue/includes/finish.lua`). */
  control: {
    counter: 'n',
    /** By which a shard is known; lost with its data. */
    marker: 'marker',
    /** Unfinished messages. */
    openMessages: 'open',
    /** Redis is almost full: accept refuses. */
    full: 'full',
    /** Slots of the workers of a pool; the suffix of the pool follows. */
    slots: 'slots',
    /** Bytes that accept and settle count (`../queue/byte-shares.ts`). */
    sharesLease: 'lease',
    accountsOver: 'over',
    accountsLean: 'lean',
    /** Cursor of the walk over the set of paused targets (`../queue/expire-paused.lua`). */
    pausedCursor: 'paused',
    /** How often tallies were folded (`../queue/fold-tallies.lua`). */
    folds: 'folds',
    newestIndexMs: 'ms',
    /** Virtual clock of the organizations of a pool; the suffix of the pool follows. */
    virtualClock: 'vt',
    lastTarget: 'tn',
    /** Stamp up to which `fin` holds nothing that belongs into an archive (`../queue/includes/archive.lua`). */
    archivePosition: 'ap',
    /** Archives that the workers of a pool have passed over; the suffix of the pool follows (`../history/archive-take.lua`). */
    archivesPassed: 'az',
    /** Period of the last sample of the backlogs. */
    sampledPeriod: 'bs',
  },
  /** Entries of the stream `out` (`../queue/includes/outbox.lua`). */
  outbox: {
    /** Where it is to be carried. */
    shard: 's',
    sinceMs: 'a',
    kind: 'k',
    /** Also the target whose messages try a failover destination. */
    event: 'e',
    /** Messages of an event: `<message> <route> <destination> <attempts>`, and their times. */
    lines: 't',
    times: 'z',
    /** The position of the walk over further targets, and its end. */
    walkFrom: 'f',
    walkUntil: 'u',
    message: 'm',
    destination: 'd',
    /** The event of messages that break the schemas of their routes; then `lines` has `<message> <route> <failed for>`. */
    brokenEvent: 'b',
    /** What each of them breaks, as a JSON list. */
    reasons: 'r',
  },
  /** Entries of the stream `ends` (`../queue/includes/ends.lua`, `../queue/includes/own-events.lua`). */
  ends: {
    route: 'r',
    /** To which the messages were sent first. */
    destination: 'd',
    atMs: 'at',
    kind: 'k',
    count: 'n',
    /** The last one; `-`: none. */
    message: 'm',

    // of one that becomes an event of Posthorn itself
    organization: 'w',
    ownRoute: 'rt',
    /** The reason, or other details. */
    details: 'y',
    /** How many of the kind were left out before this one. */
    omitted: 'x',
    /** Hops of the cause, if that is not a message. */
    hops: 'h',
    /** No worker has ever configured the target. */
    isUnknown: 'uk',
  },
  /** Entries of the stream `circuits` (`../queue/includes/circuit.lua`). */
  transitions: { route: 'r', destination: 'd', state: 's', atMs: 'at', consecutiveFailures: 'f' },
} as const;

/** Prefix of the key of a hash or stream, after the base of the shard. */
export const hashKeys = {
  'm:': 'message',
  't:': 'target',
  'l:': 'limiter',
  'o:': 'organization',
  'ar:': 'archive',
  'al:': ['alerts', 'alertState'],
  'oe:': 'ownEvents',
  'q:': 'deadLetters',
  'w:': 'entry',
  'i:': 'entry',
  fin: 'entry',
  'fin:': 'entry',
  dead: 'entry',
  ctl: 'control',
  out: 'outbox',
  ends: 'ends',
  circuits: 'transitions',
} as const satisfies Record<string, keyof typeof hashFields | readonly (keyof typeof hashFields)[]>;
