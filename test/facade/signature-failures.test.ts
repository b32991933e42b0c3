import { startFacadeWorld } from './facade-world.ts';
import { describeSignatureFailures } from './suites/signature-failures.ts';

describeSignatureFailures(() => startFacadeWorld());
