import { afterAll, beforeAll, beforeEach } from '@jest/globals';
import { type MessageQueue, startMessageQueue } from './message-queue.ts';

/** What the tests of a suite about the messages of one shard share. Redis is emptied before each test, and the worker `w1` is known. */
export type MessageQueueSuite = Readonly<Omit<MessageQueue, 'reset'>>;

/** Registers the hooks of the suite that calls it. */
export function messageQueueSuite(prefix: string): MessageQueueSuite {
  let started: MessageQueue;
  beforeAll(async () => {
    started = await startMessageQueue(prefix);
  });
  afterAll(() => started.redis.stop());
  beforeEach(() => started.reset());
  return {
    get redis() {
      return started.redis;
    },
    get queue() {
      return started.queue;
    },
    get acceptor() {
      return started.acceptor;
    },
    get reader() {
      return started.reader;
    },
  };
}
