#!/usr/bin/env node
import { PosthornError } from '../core/errors.ts';
import { parseCommandLine, startsRole, UsageError, usage } from './command-line.ts';
import { ConfigError, readConfig } from './config.ts';
import { setLookupThreads } from './lookup-threads.ts';
import { runAsProcess } from './role-process.ts';
import { compileAsUsual } from './start-memory.ts';
import { version } from './version.ts';

/** Runs the command of the arguments. Each role's modules are loaded only when it is used. */
async function main(): Promise<void> {
  const command = parseCommandLine(process.argv.slice(2));
  if (command.name === 'delivery' || command.name === 'standalone') setLookupThreads();
  if (!startsRole(command)) compileAsUsual();
  switch (command.name) {
    case 'help':
      process.stdout.write(usage(command.of));
      return;
    case 'version':
      process.stdout.write(`posthorn ${version}\n`);
      return;
    case 'crds': {
      const { allCrds, crdYaml } = await import('../resources/custom-resource-definitions.ts');
      process.stdout.write(allCrds().map(crdYaml).join('---\n'));
      return;
    }
    case 'lint': {
      const { lint } = await import('./lint/lint.ts');
      process.exitCode = await lint(readConfig('lint', process.env), command, (line) => process.stdout.write(`${line}\n`));
      return;
    }
    case 'check': {
      const { check } = await import('./check.ts');
      process.exitCode = await check(readConfig('check', process.env), (line) => process.stdout.write(`${line}\n`));
      return;
    }
    case 'migrate': {
      const { migrate } = await import('./migrate.ts');
      process.exitCode = await migrate(readConfig('migrate', process.env), (line) => process.stdout.write(`${line}\n`));
      return;
    }
    case 'rekey': {
      const { rekey } = await import('./rekey.ts');
      process.exitCode = await rekey(readConfig('rekey', process.env), (line) => process.stdout.write(`${line}\n`));
      return;
    }
    case 'uninstall': {
      const { uninstallFromCluster } = await import('./uninstall-from-cluster.ts');
      await uninstallFromCluster(readConfig('uninstall', process.env), command, (line) => process.stdout.write(`${line}\n`));
      return;
    }
    case 'controller':
    case 'api':
    case 'ingest':
    case 'delivery': {
      const config = readConfig(command.name, process.env);
      return await runAsProcess(await roleOf(command.name), config, process.env);
    }
    case 'standalone': {
      const config = readConfig('standalone', process.env);
      const { standaloneRole } = await import('./standalone.ts');
      return await runAsProcess(
        standaloneRole({ ...command, program: process.argv[1] ?? '', environment: process.env }),
        config,
        process.env,
      );
    }
    default:
      command satisfies never;
  }
}

async function roleOf(name: 'controller' | 'api' | 'ingest' | 'delivery') {
  switch (name) {
    case 'controller':
      return (await import('./controller.ts')).controllerRole;
    case 'api':
      return (await import('./api.ts')).apiRole;
    case 'ingest':
      return (await import('./ingest.ts')).ingestRole;
    case 'delivery':
      return (await import('./delivery.ts')).deliveryRole;
  }
}

// The reader of our output may have had enough: `posthorn crds | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
try {
  await main();
} catch (error) {
  if (error instanceof UsageError) process.stderr.write(`posthorn: ${error.message}\n\n${usage()}`);
  else if (error instanceof ConfigError) process.stderr.write(`posthorn: ${error.message}\n`);
  else if (error instanceof PosthornError) process.stderr.write(`posthorn: ${error.message}\n`);
  else throw error;
  process.exitCode = 2;
}
