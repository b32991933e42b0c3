import { readFileSync } from 'node:fs';
import { Agent, type Dispatcher } from 'undici';

/**
 * Connections to a server whose authority is in a file that the server itself may still be writing. What is made from a half of the file never
 * works: each use reads it again, until one has succeeded.
 */
export class AgentOfFile {
  readonly #caFile: string;
  #kept: Agent | null = null;

  constructor(caFile: string) {
    this.#caFile = caFile;
  }

  /** Runs what sends requests, and reads their answers to the end, by this agent. */
  async use<T>(send: (dispatcher: Dispatcher) => Promise<T>): Promise<T> {
    if (this.#kept !== null) return await send(this.#kept);
    const agent = new Agent({ connect: { ca: readFileSync(this.#caFile) } });
    try {
      const answer = await send(agent);
      this.#kept ??= agent;
      return answer;
    } finally {
      if (this.#kept !== agent) await agent.destroy();
    }
  }

  async destroy(): Promise<void> {
    await this.#kept?.destroy();
  }
}
