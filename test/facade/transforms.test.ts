import { startFacadeWorld } from './facade-world.ts';
import { describeTransforms } from './suites/transforms.ts';

describeTransforms(() => startFacadeWorld({ inForceTimeoutMs: 20_000 }));
