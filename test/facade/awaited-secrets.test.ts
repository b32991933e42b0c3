import { startFacadeWorld } from './facade-world.ts';
import { describeAwaitedSecrets } from './suites/awaited-secrets.ts';

describeAwaitedSecrets(() => startFacadeWorld());
