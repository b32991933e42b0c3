import { startFacadeWorld } from './facade-world.ts';
import { describeTransferProperties } from './suites/transfer-properties.ts';

describeTransferProperties(() => startFacadeWorld(), 80);
