import { startFacadeWorld } from './facade-world.ts';
import { describeDestinationTls } from './suites/destination-tls.ts';

describeDestinationTls(() => startFacadeWorld());
