import { startFacadeWorld } from './facade-world.ts';
import { describeRouteCircuit } from './suites/route-circuit.ts';

describeRouteCircuit(() => startFacadeWorld());
