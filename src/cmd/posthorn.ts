#!/usr/bin/env node
import { startWithoutCompilers } from './start-memory.ts';

// Before anything else is loaded.
startWithoutCompilers();
await import('./commands.ts');
