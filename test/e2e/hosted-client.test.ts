import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { type Standalone, startStandalone } from '../support/program.ts';

const run = promisify(execFile);
const toolchain = new URL('../../hack/lib/toolchain.sh', import.meta.url).pathname;
const script = new URL('./hosted-client/calls.py', import.meta.url).pathname;
const page = readFileSync(new URL('../../docs/migrating.md', import.meta.url), 'utf8');

const outcome = z.object({
  version: z.string(),
  methods: z.array(z.string()),
  uncalled: z.array(z.string()),
  refusals: z.record(z.string(), z.string()),
  failures: z.array(z.string()),
});
const kinds = ['sync', 'async'] as const;

/** A Python with the client; null where there is none. */
function installedClient(): string | null {
  const { status, stdout } = spawnSync('bash', ['-c', `. "${toolchain}"; ensure_hosted_client && echo "$hosted_client"`], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return status === 0 ? stdout.trim() : null;
}

/** What Posthorn does not serve of the hosted API, and the client's report: a status, or `pydantic` for an answer that it cannot read. */
const refused = {
  'api_keys.create with expires_in': '400',
  'cron_jobs.create with notify_on_failure': '400',
  'cron_jobs.create_group': '404',
  'cron_jobs.list_groups': '404',
  'destinations.create of type r2 without endpoint and keys': '400',
  'destinations.import_destinations of a record that fails': 'pydantic',
  'events.debug': '404',
  'events.export': '404',
  'events.list with event_type': '400',
  'events.list with search': '400',
  'organizations.cancel_invite': '404',
  'organizations.create': '405',
  'organizations.get': '404',
  'organizations.invite': '404',
  'organizations.list_invites': '404',
  'organizations.list_members': '404',
  'organizations.remove_member': '404',
  'organizations.update': '404',
  'organizations.update_member': '404',
  'outbound.endpoints.verify': '404',
  'outbound.portal_tokens.create': '404',
  'outbound.portal_tokens.list': '404',
  'outbound.portal_tokens.revoke': '404',
  'providers.events': '404',
  'providers.get': '404',
  'providers.list': '404',
  'routes.import_routes': 'pydantic',
  'sources.adopt_pending_verification': '404',
  'sources.create with transient_mode': '400',
  'sources.get_pending_verification': '404',
  'sources.import_sources of a record that fails': 'pydantic',
  'sources.reveal_secret': '404',
  'sources.rotate_verify_token': '404',
  'sources.verify_token': '404',
  'transforms.create with a type that Posthorn does not have': '400',
  'tunnels.bulk_delete': '404',
  'tunnels.create': '404',
  'tunnels.delete': '404',
  'tunnels.disconnect': '404',
  'tunnels.get': '404',
  'tunnels.list': '404',
  'tunnels.regenerate_token': '404',
  'tunnels.update': '404',
};

const python = installedClient();
const withClient = python === null ? describe.skip : describe;

withClient('the Python client of the hosted API, with another base URL', () => {
  const outcomes = new Map<string, z.output<typeof outcome>>();
  let standalone: Standalone;
  beforeAll(async () => {
    standalone = await startStandalone({
      environment: { POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true', POSTHORN_AUTH_FAILURES_PER_MINUTE: '10' },
    });
    for (const kind of kinds) {
      const { stdout } = await run(python ?? '', ['-B', script, kind, standalone.url, standalone.key], { timeout: 150_000 });
      outcomes.set(kind, outcome.parse(JSON.parse(stdout)));
    }
  }, 360_000);
  afterAll(() => standalone?.stop());

  test.each(kinds)('%s: every public method is called', (kind) => {
    const { methods, uncalled } = outcomes.get(kind) ?? {};
    expect(uncalled).toEqual([]);
    expect(methods?.length).toBeGreaterThan(140);
  });

  test.each(kinds)('%s: what is made, read, changed, sent, received and verified is as its caller expects', (kind) => {
    expect(outcomes.get(kind)?.failures).toEqual([]);
  });

  test.each(kinds)('%s: what Posthorn does not serve is refused as listed', (kind) => {
    expect(outcomes.get(kind)?.refusals).toEqual(refused);
  });
});

test('the page on migrating names everything that the client of the hosted API does not get', () => {
  const named = (method: string): boolean => {
    const [owner = '', name = ''] =
      method
        .replace(/^outbound\./, '')
        .split(/ (?:with|of)? ?/)[0]
        ?.split('.') ?? [];
    return page.includes(`\`${owner}.${name}\``) || page.includes(`\`${owner}.*\``);
  };
  expect(Object.keys(refused).filter((method) => !named(method))).toEqual([]);
});
