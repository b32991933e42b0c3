import { startFacadeWorld } from './facade-world.ts';
import { describeWrites } from './suites/writes.ts';

describeWrites(() => startFacadeWorld());
