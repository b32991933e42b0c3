import type { Logger as PinoLogger } from 'pino';

/** The one logger type; made in `src/cmd`, passed down. */
export type Logger = Pick<PinoLogger, 'debug' | 'info' | 'warn' | 'error'> & { child(bindings: Record<string, unknown>): Logger };
