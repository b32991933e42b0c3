import { startFacadeWorld } from './facade-world.ts';
import { describeSources } from './suites/sources.ts';

describeSources(() => startFacadeWorld());
