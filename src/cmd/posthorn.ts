#!/usr/bin/env node
import { optimizeCode } from './optimize-code.ts';

// Before anything else is loaded.
optimizeCode(false);
const { runCommand } = await import('./run-command.ts');
await runCommand();
