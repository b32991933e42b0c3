import { startFacadeWorld } from './facade-world.ts';
import { describeBulk } from './suites/bulk.ts';

describeBulk(() => startFacadeWorld());
