import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from './support/redis.ts';

const root = new URL('..', import.meta.url).pathname;
const rules = /^user posthorn (.+)$/m.exec(readFileSync(join(root, 'config/redis/users.acl'), 'utf8'))?.[1]?.split(' ') ?? [];
const allowed = rules.filter((rule) => /^\+[a-z]/.test(rule)).map((rule) => rule.slice(1));
/** Rules name their subcommands, `<command>|<subcommand>`. */
const containers = new Set(['client', 'cluster', 'config', 'xgroup', 'xinfo']);
/** Commands that neither a script nor a client method's name shows. */
const otherwise: Record<string, string> = {
  evalsha: 'src/redis/script.ts runs a script that Redis knows',
  eval: 'src/redis/script.ts, one that it does not know yet',
  hello: 'ioredis asks for RESP3, with user and password',
  select: 'ioredis, where the URL names another database than 0',
  'client|setname': 'ioredis, for the name of a process by which others see it (connected-processes.ts)',
  info: 'ioredis asks whether the server has loaded its data',
  'cluster|info': 'ioredis asks a Cluster the same',
  'cluster|slots': 'ioredis, which node has a key',
  asking: 'ioredis, to a node of a Cluster that is being given a slot',
};

/** Module for the Redis of standalone, which has no such user. */
const ownRedis = 'src/cmd/standalone/own-redis.ts';
const read = (pattern: string): { file: string; source: string }[] =>
  globSync(pattern, { cwd: root })
    .filter((file) => !file.endsWith('.test.ts') && file !== ownRedis)
    .map((file) => ({ file, source: readFileSync(join(root, file), 'utf8') }));

function named(command: string, subcommand: string | undefined): string {
  const name = command.toLowerCase();
  return containers.has(name) ? `${name}|${subcommand?.toLowerCase()}` : name;
}

/** By command, files of scripts that call it; `?` of a call with a computed command. */
function calledByScripts(): Map<string, string> {
  const found = new Map<string, string>();
  for (const { file, source } of read('src/**/*.lua')) {
    for (const [, first = '', subcommand] of source
      .replaceAll(/--.*$/gm, '')
      .matchAll(/(?:\bredis\.p|\b)call\(([^,()]*)(?:, *'(\w+)')?/g)) {
      const commands = [...first.matchAll(/'([A-Z]{3,})'/g)];
      if (commands.length === 0) found.set('?', file);
      for (const [, command = ''] of commands) found.set(named(command, subcommand), file);
    }
  }
  return found;
}

/** By command, files that send it by a method of a client or of a chain of `multi` or `pipeline`, or by `call`. */
function sentByTypeScript(known: ReadonlySet<string>): Map<string, string> {
  const found = new Map<string, string>();
  for (const { file, source } of read('src/**/*.ts')) {
    const note = (method: string, subcommand?: string): void => {
      const command = method.replace(/Buffer$/, '');
      if (known.has(command)) found.set(named(command, subcommand), file);
    };
    for (const [, method = '', subcommand] of source.matchAll(
      /\b(?:\w*redis|blocking|server|connection|probe)\)?\s*\.([a-zA-Z]+)\(\s*(?:'(\w+)')?/gi,
    ))
      note(method, subcommand);
    for (const [chain] of source.matchAll(/\.(?:multi|pipeline)\(\)[^;]*/g))
      for (const [, method = ''] of chain.matchAll(/\.(\w+)\(/g)) note(method);
    for (const [, command = '', subcommand] of source.matchAll(/\.call(?:Buffer)?\(\s*'([A-Z]+)'(?:,\s*'([A-Z]+)')?/g))
      note(command.toLowerCase(), subcommand);
  }
  return found;
}

let redis: RedisServer;
/** All that Redis has. */
let known: ReadonlySet<string>;
beforeAll(async () => {
  redis = await startRedis();
  known = new Set((await redis.client.call('COMMAND', 'LIST')) as string[]);
});
afterAll(() => redis.stop());

describe('the user of config/redis/users.acl', () => {
  test('the user of config/redis/users.acl is one that Redis takes', async () => {
    expect(await redis.client.call('ACL', 'SETUSER', 'posthorn', ...rules)).toBe('OK');
  });

  test('the user of config/redis/users.acl may do what scripts call', () => {
    const called = calledByScripts();
    expect(called.size).toBeGreaterThan(50);
    expect([...called].filter(([command]) => !allowed.includes(command))).toEqual([]);
  });

  test('the user of config/redis/users.acl may do what is sent otherwise', () => {
    const sent = sentByTypeScript(known);
    expect(sent.size).toBeGreaterThan(30);
    expect([...sent].filter(([command]) => !allowed.includes(command))).toEqual([]);
    expect(Object.keys(otherwise).filter((command) => !allowed.includes(command))).toEqual([]);
  });

  test('the user of config/redis/users.acl may do nothing else, and its commands are in order', () => {
    const used = new Set([...calledByScripts().keys(), ...sentByTypeScript(known).keys(), ...Object.keys(otherwise)]);
    expect(allowed).toEqual([...used].sort());
  });
});
