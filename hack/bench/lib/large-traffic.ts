// A process of its own that sends large payloads, and takes those that are delivered: its work is no part of what others measure.
import { createServer, request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { openLoop } from './open-loop.ts';

/** Its orders over its channel. */
export interface LargeOrder {
  url: string;
  bytes: number;
  perSecond: number;
  seconds: number;
}

/** Its messages: first its address, then the result of each order. */
export type LargeReport = { origin: string } | { accepted: number; refused: number; answerMs: number[]; arrived: number };

const pieceBytes = 65_536;
let arrived = 0;

function send(url: string, payload: Buffer): Promise<number> {
  return new Promise((resolve) => {
    const headers = { 'content-type': 'application/json', 'content-length': payload.length };
    const request = httpRequest(url, { method: 'POST', headers, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    });
    request.on('error', () => resolve(0));
    let at = 0;
    const write = (): void => {
      while (at < payload.length) {
        const piece = payload.subarray(at, at + pieceBytes);
        at += pieceBytes;
        if (!request.write(piece)) return void request.once('drain', write);
      }
      request.end();
    };
    write();
  });
}

async function carryOut({ url, bytes, perSecond, seconds }: LargeOrder): Promise<LargeReport> {
  arrived = 0;
  const item = JSON.stringify({ id: 17, name: 'something', text: 'x'.repeat(80) });
  const payload = Buffer.from(`{"items":[${Array.from({ length: Math.floor(bytes / (item.length + 1)) }, () => item).join(',')}]}`);
  const [answerMs, statuses]: [number[], number[]] = [[], []];
  await openLoop(perSecond, seconds, async (at) => {
    statuses.push(await send(url, payload));
    answerMs.push(performance.now() - at);
  });
  await sleep(2000);
  const accepted = statuses.filter((status) => status === 200).length;
  return { accepted, refused: statuses.length - accepted, answerMs, arrived };
}

if (process.send !== undefined) {
  const tell = (report: LargeReport): void => void process.send?.(report);
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      arrived++;
      response.end('ok');
    });
  });
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    tell({ origin: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}` });
  });
  process.on('message', (order: LargeOrder) => void carryOut(order).then(tell));
  process.on('disconnect', () => process.exit());
}
