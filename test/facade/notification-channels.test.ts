import { startFacadeWorld } from './facade-world.ts';
import { describeNotificationChannels } from './suites/notification-channels.ts';

describeNotificationChannels(() => startFacadeWorld());
