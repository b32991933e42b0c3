import { PosthornError } from '../../core/errors.ts';
import type { Wakeup } from '../loops/wakeup.ts';

export type ConsumerMode = 'starting' | 'idle' | 'ready' | 'recovering' | 'dequeuing' | 'adopting' | 'backing-off' | 'stopped';

/** Work that may wait in the shard. Pressing work does not wait for the shard's next poll. */
type Work = 'none' | 'some' | 'pressing';

/**
 * State machine of a `ShardConsumer`. It is in one of these modes:
 *
 * - `starting`: the worker has not yet sent its first heartbeat. Nothing is taken: no process would find the worker dead and requeue its jobs.
 * - `idle`: no work is known in the shard.
 * - `ready`: work may wait. The next take dequeues.
 * - `recovering`: the worker may hold jobs that it does not list, because a reply of Redis was lost. The next take adopts them.
 * - `dequeuing`, `adopting`: the call of the take is under way. There is one at a time.
 * - `backing-off`: the call failed. Nothing is taken until the back-off of the worker's Redis calls is over.
 * - `stopped`: the worker shuts down. Final.
 *
 * Work and losses that are signalled in a mode that cannot act on them are kept, but for a loss during `adopting`: the call under way finds it. "By signals" is `recovering` after a loss, else `ready` with
 * work, else `idle`. The transitions:
 *
 * | from | event | to |
 * |---|---|---|
 * | `starting` | `start` | by signals |
 * | `idle` | `noteWork` | `ready` |
 * | `idle`, `ready` | `noteLoss` | `recovering` |
 * | `ready` | `beginTake` | `dequeuing`; the signalled work is taken |
 * | `recovering` | `beginTake` | `adopting` |
 * | `dequeuing` | `endTake` | by signals |
 * | `adopting` | `endTake` | by signals; what was lost is found |
 * | `dequeuing`, `adopting` | `failTake` | `backing-off`; the work is signalled again |
 * | `backing-off` | `resume` | by signals, which is never `idle` |
 * | `starting`, `idle`, `ready`, `recovering`, `backing-off` | `stop` | `stopped` |
 *
 * `noteWork` and `noteLoss` are legal in every mode, and stay without effect in `stopped`. Any other event in another mode than these is a defect and
 * throws INTERNAL. The wakeup is signalled when a take makes sense, or makes more sense than before; the caller of a take observes its end itself.
 */
export class ConsumerState {
  readonly #wakeup: Pick<Wakeup, 'signal'>;
  #mode: ConsumerMode = 'starting';
  #work: Work = 'none';
  #hasLoss = false;
  /** Purpose of the dequeue under way. */
  #takenFor: Work = 'none';

  constructor(wakeup: Pick<Wakeup, 'signal'>) {
    this.#wakeup = wakeup;
  }

  get mode(): ConsumerMode {
    return this.#mode;
  }

  /** Whether a take makes sense now. */
  get wantsToTake(): boolean {
    return this.#mode === 'ready' || this.#mode === 'recovering';
  }

  get isPressing(): boolean {
    return this.#work === 'pressing';
  }

  start(): void {
    this.#leave('start', 'starting');
    this.#goOn();
  }

  noteWork({ isPressing = false }: { isPressing?: boolean } = {}): void {
    if (this.#mode === 'stopped') return;
    if (isPressing || this.#work === 'none') this.#work = isPressing ? 'pressing' : 'some';
    this.#reconsider();
  }

  /** The worker may hold jobs that it does not list. */
  noteLoss(): void {
    if (this.#mode === 'stopped') return;
    this.#hasLoss = true;
    this.#reconsider();
  }

  /** Returns what the take is to do. */
  beginTake(): 'dequeuing' | 'adopting' {
    this.#leave('begin a take', 'ready', 'recovering');
    if (this.#hasLoss) {
      this.#mode = 'adopting';
      return 'adopting';
    }
    this.#takenFor = this.#work;
    this.#work = 'none';
    this.#mode = 'dequeuing';
    return 'dequeuing';
  }

  endTake(): void {
    this.#leave('end a take', 'dequeuing', 'adopting');
    if (this.#mode === 'adopting') this.#hasLoss = false;
    this.#takenFor = 'none';
    this.#mode = this.#modeByNotes;
  }

  failTake(): void {
    this.#leave('fail a take', 'dequeuing', 'adopting');
    if (this.#takenFor === 'pressing') this.#work = 'pressing';
    if (this.#work === 'none') this.#work = 'some';
    this.#takenFor = 'none';
    this.#mode = 'backing-off';
  }

  resume(): void {
    this.#leave('resume', 'backing-off');
    this.#goOn();
  }

  stop(): void {
    this.#leave('stop', 'starting', 'idle', 'ready', 'recovering', 'backing-off');
    this.#mode = 'stopped';
  }

  #leave(event: string, ...modes: readonly ConsumerMode[]): void {
    if (!modes.includes(this.#mode))
      throw new PosthornError('INTERNAL', `the consumer of a shard cannot ${event} while it is ${this.#mode}`);
  }

  /** Where a take can begin, signals decide which. */
  #reconsider(): void {
    if (this.#mode === 'idle' || this.#mode === 'ready' || this.#mode === 'recovering') this.#goOn();
  }

  #goOn(): void {
    this.#mode = this.#modeByNotes;
    if (this.#mode !== 'idle') this.#wakeup.signal();
  }

  get #modeByNotes(): 'idle' | 'ready' | 'recovering' {
    if (this.#hasLoss) return 'recovering';
    return this.#work === 'none' ? 'idle' : 'ready';
  }
}
