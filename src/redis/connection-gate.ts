import { Cluster, Redis } from 'ioredis';
import { RedisUnavailableError } from '../core/redis-unavailable-error.ts';
import type { RedisClient } from './connection.ts';

/** Check of a connection, each time that it is made, before anything else is sent over it. */
export interface ConnectionCheck {
  /** The commands of `ask` use these keys alone. */
  keys: readonly string[];
  /** Rejects when nothing may be sent to the server at the other end. */
  ask(redis: RedisClient): Promise<void>;
}

type Arguments = Parameters<Cluster['sendCommand']>;
type Send = (...sent: Arguments) => unknown;

/** ioredis sends them to set up a connection, or before a command that a node of a Cluster redirects; they change nothing that is stored. */
const setup: ReadonlySet<string> = new Set(['asking', 'auth', 'client', 'cluster', 'hello', 'info', 'readonly', 'select']);

/**
 * Holds the commands of a connection until `check.ask` has succeeded over it, including those that ioredis resends after the connection broke.
 * They are rejected with UNAVAILABLE when it fails, and the next command retries. Each connection to a node of a Cluster is held by itself, because it
 * breaks, and resends, by itself: while the node that has `check.keys` is down, the others that have passed continue.
 * Returns a function that forces another check.
 */
export function gateConnection(client: RedisClient, check: ConnectionCheck): () => void {
  const ask = (): Promise<void> => check.ask(client);
  if (client instanceof Redis) return gateOne(client, { keys: check.keys, ask });
  const send: Send = (command, stream, node) => Cluster.prototype.sendCommand.call(client, command, stream, node);
  const doubts = new Set([gate(client, { keys: check.keys, ask }, send)]);
  client.on('+node', (node: Redis) => {
    const doubt = gateOne(node, { keys: check.keys, ask });
    doubts.add(doubt);
    node.once('end', () => doubts.delete(doubt));
  });
  return () => {
    for (const doubt of doubts) doubt();
  };
}

type Asking = Pick<ConnectionCheck, 'keys'> & { ask(): Promise<void> };

function gateOne(client: Redis, check: Asking): () => void {
  return gate(client, check, (command, stream) => Redis.prototype.sendCommand.call(client, command, stream));
}

function gate(client: RedisClient, check: Asking, send: Send): () => void {
  let isChecked = false;
  /** How often an earlier answer of the check has lost its worth. */
  let doubts = 0;
  let held: Arguments[] | null = null;
  const doubt = (): void => {
    isChecked = false;
    doubts++;
  };
  const ask = async (): Promise<void> => {
    let failure: unknown = null;
    let seen: number;
    do {
      seen = doubts;
      failure = await check.ask().then(
        () => null,
        (error: unknown) => error,
      );
    } while (failure === null && seen !== doubts);
    const waiting = held ?? [];
    held = null;
    isChecked = failure === null;
    for (const each of waiting) {
      if (failure === null) send(...each);
      // Whatever the reason: it ends once the right server is there.
      else each[0].reject(new RedisUnavailableError(failure));
    }
  };
  client.on('close', doubt);
  client.sendCommand = (...sent: Arguments) => {
    const [command] = sent;
    // A connection that is not ready refuses the command by itself, or sends it in this way once it is.
    if (isChecked || client.status !== 'ready' || setup.has(command.name) || check.keys.includes(String(command.args[0])))
      return send(...sent);
    if (held === null) {
      held = [sent];
      void ask();
    } else held.push(sent);
    return command.promise;
  };
  return doubt;
}
