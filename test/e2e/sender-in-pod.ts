// Runs as the program of a pod: sends numbered events at a steady rate, each again until it is taken, and prints what became of each.
// SIGTERM ends it once all are taken.
import { setTimeout as sleep } from 'node:timers/promises';

const { SENDER_URL: url = '', SENDER_PER_SECOND: perSecond = '' } = process.env;
const answerDeadlineMs = 5000;
const againMs = 200;
/** On a machine that cannot keep up more would only take memory. */
const maxUnderWay = 100;
let isRunning = true;
let underWay = 0;
process.once('SIGTERM', () => {
  isRunning = false;
});

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function send(number: number): Promise<void> {
  // The source recognizes the same number, so that an event whose answer was lost is stored once.
  const headers = { 'content-type': 'application/json', 'idempotency-key': String(number) };
  for (;;) {
    try {
      const signal = AbortSignal.timeout(answerDeadlineMs);
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ number }), signal });
      await response.arrayBuffer();
      if (response.ok) return say(`${number} accepted`);
      say(`${number} refused ${response.status} ${response.headers.get('x-error-code')} ${new Date().toISOString()}`);
    } catch (error) {
      say(`${number} unanswered ${error instanceof Error ? error.message : error}`);
    }
    await sleep(againMs);
  }
}

const begin = performance.now();
for (let number = 0; isRunning; number++) {
  const waitMs = begin + (number * 1000) / Number(perSecond) - performance.now();
  if (waitMs > 0) await sleep(waitMs);
  while (underWay >= maxUnderWay) await sleep(20);
  underWay++;
  void send(number).then(() => underWay--);
}
