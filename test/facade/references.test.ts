import { startFacadeWorld } from './facade-world.ts';
import { describeReferences } from './suites/references.ts';

describeReferences(() => startFacadeWorld());
