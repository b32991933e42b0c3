import { parseArgs } from 'node:util';
import { z } from 'zod';
import { roles } from './config.ts';

export type Command =
  | { name: 'help'; of: string | undefined }
  | { name: 'version' }
  | { name: 'crds' }
  | { name: 'lint'; paths: string[]; namespace: string; output: 'text' | 'json'; isPartial: boolean }
  | { name: 'check' | 'migrate' | 'rekey' | 'controller' | 'api' | 'ingest' | 'delivery' }
  | { name: 'uninstall'; controller: string; deletesOrganizations: boolean; deletesCrds: boolean }
  | { name: 'standalone'; manifestsDirectory: string | undefined; workers: number };

/** Whether it begins a process that stays. */
export function startsRole({ name }: Command): boolean {
  return roles.some((role) => role === name);
}

/** The command line is invalid; the program prints why and exits with 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

const commands = [...roles, 'crds', 'lint', 'check', 'migrate', 'rekey', 'uninstall'] as const;
const workersMax = 64;

const flagsOf = {
  controller: {},
  api: {},
  ingest: {},
  delivery: {},
  crds: {},
  lint: { namespace: { type: 'string' }, output: { type: 'string' }, partial: { type: 'boolean' } },
  check: {},
  migrate: {},
  rekey: {},
  uninstall: { controller: { type: 'string' }, 'delete-organizations': { type: 'boolean' }, 'delete-crds': { type: 'boolean' } },
  standalone: { manifests: { type: 'string' }, workers: { type: 'string' } },
} as const;

/** Throws UsageError. */
export function parseCommandLine(argv: readonly string[]): Command {
  const [first, ...rest] = argv;
  if (first === undefined) throw new UsageError('which role?');
  if (first === '--help' || first === '-h' || first === 'help') return { name: 'help', of: undefined };
  if (first === '--version') return { name: 'version' };
  const name = commands.find((command) => command === first);
  if (name === undefined) throw new UsageError(first.startsWith('-') ? `unknown flag ${first}` : `unknown role ${first}`);
  const { values, paths } = parseFlags(name, rest);
  if (values.help === true) return { name: 'help', of: name };
  if (name === 'lint') {
    const { namespace = 'default', output = 'text', partial: isPartial = false } = values;
    if (paths.length === 0) throw new UsageError('lint needs a file or a directory');
    return { name, paths, namespace, output, isPartial };
  }
  if (name === 'uninstall') {
    if (values.controller === undefined) throw new UsageError('uninstall needs --controller');
    const { controller, 'delete-organizations': deletesOrganizations = false, 'delete-crds': deletesCrds = false } = values;
    return { name, controller, deletesOrganizations, deletesCrds };
  }
  if (name !== 'standalone') return { name };
  return { name, manifestsDirectory: values.manifests, workers: parseWorkers(values.workers) };
}

const flagValues = z.object({
  help: z.boolean().optional(),
  manifests: z.string().optional(),
  workers: z.string().optional(),
  controller: z.string().min(1).optional(),
  'delete-organizations': z.boolean().optional(),
  'delete-crds': z.boolean().optional(),
  namespace: z.string().min(1).optional(),
  output: z.enum(['text', 'json'], { error: '--output must be text or json' }).optional(),
  partial: z.boolean().optional(),
});

function parseFlags(name: keyof typeof flagsOf, argv: string[]): { values: z.output<typeof flagValues>; paths: string[] } {
  try {
    const options = { help: { type: 'boolean', short: 'h' }, ...flagsOf[name] } as const;
    const { values, positionals } = parseArgs({ args: argv, options, allowPositionals: name === 'lint' });
    return { values: flagValues.parse(values), paths: positionals };
  } catch (error) {
    if (error instanceof z.ZodError) throw new UsageError(error.issues.map(({ message }) => message).join('; '));
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function parseWorkers(text: string | undefined): number {
  if (text === undefined) return 1;
  const workers = Number(text);
  if (!/^\d+$/.test(text) || workers < 1 || workers > workersMax) throw new UsageError(`--workers must be between 1 and ${workersMax}`);
  return workers;
}

const general = `Usage: posthorn <role> [flags]

Roles
  standalone   everything on one machine, with a Redis of its own when none is given
  controller   compiles the resources and publishes them; several elect a leader
  api          the REST API and its documentation at /docs
  ingest       takes the events that senders post to /ingest/
  delivery     a worker that delivers
  crds         prints the CustomResourceDefinitions as YAML
  lint         judges manifests without a cluster; exit code 1 when one is wrong
  check        proves that each accepted message is in exactly one place and will have its turn; exit code 1 when not
  migrate      after an upgrade: brings what the release before has written into the form of this one; exit code 1 when it cannot
  rekey        seals all stored secrets under the newest key; exit code 1 when something does not open
  uninstall    what comes before an installation in Kubernetes is deleted; the Helm chart runs it

Flags
  --help       this text; after a role, its flags
  --version    the version

The roles are configured by environment variables: docs/configuration.md.
`;

const lint = `Usage: posthorn lint [flags] FILE…

Judges the manifests of the files, and of all files below the directories, as a cluster would that has nothing else; - is the standard input.

  --namespace NAME  namespace of objects that name none (default)
  --output FORMAT   text, or json for programs
  --partial         an object that the files refer to and do not hold is a warning, not an error: the cluster may have it
  --help            this text

Exit code: 0 without errors, 1 with errors, 2 when a file cannot be read. Settings of the installation that count are read from the environment, such as
POSTHORN_MAIL_DOMAINS: docs/lint.md.
`;

const standalone = `Usage: posthorn standalone [flags]

  --manifests DIR   load the YAML manifests of DIR and follow their changes
  --workers N       number of delivery processes (1)
  --help            this text
`;

const uninstall = `Usage: posthorn uninstall --controller NAME [flags]

  --controller NAME        Deployment of the controllers, in the namespace of this pod: it is deleted
  --delete-organizations   delete the Organizations of this installation before, with everything that they have
  --delete-crds            the CRDs are deleted afterwards: refuse while other installations have Organizations
  --help                   this text
`;

export function usage(of?: string): string {
  switch (of) {
    case 'standalone':
      return standalone;
    case 'lint':
      return lint;
    case 'uninstall':
      return uninstall;
    case undefined:
      return general;
    default:
      return `Usage: posthorn ${of}\n\nThere are no flags: see docs/configuration.md for the environment variables.\n`;
  }
}
