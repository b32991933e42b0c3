import { pino } from 'pino';

/** The real logger, writing nothing. */
export const silentLogger = pino({ level: 'silent' });
