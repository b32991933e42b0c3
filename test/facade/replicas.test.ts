import { startFacadeWorld } from './facade-world.ts';
import { describeReplicas } from './suites/replicas.ts';

describeReplicas(() => startFacadeWorld());
