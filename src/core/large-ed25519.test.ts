import { generateKeyPairSync, sign } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { type LargeWork, signLarge, verifyLarge } from './large-ed25519.ts';
import { AbandonedError, LoopTurns } from './loop-turns.ts';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const other = generateKeyPairSync('ed25519');
const body = (mebibytes: number): Buffer => Buffer.alloc(mebibytes * 1_048_576, 'x');
const [small, large] = [body(2), body(20)];
const turns = new LoopTurns();
const work = (organization: string, signal?: AbortSignal): LargeWork => ({
  organization,
  inTurns: (pieces) => turns.of(organization).run(pieces, signal),
  ...(signal !== undefined && { signal }),
});
const signedBy = (key = privateKey, of = large) => sign(null, Buffer.concat([Buffer.from('head.'), of]), key);

test('One content at a time is signed or verified, and organizations take turns.', async () => {
  const ended: string[] = [];
  const job = async (organization: string, what: 'signs' | 'verifies', of: Buffer): Promise<void> => {
    const content = { head: 'head.', body: of };
    if (what === 'signs') await signLarge(content, [privateKey], work(organization));
    else await verifyLarge(content, [{ key: publicKey, signature: signedBy(privateKey, small) }], work(organization));
    ended.push(`${organization} ${what}`);
  };
  const jobs = [
    job('org_a', 'signs', large),
    job('org_a', 'signs', large),
    job('org_a', 'verifies', large),
    job('org_b', 'verifies', small),
    job('org_c', 'signs', small),
    job('org_b', 'signs', small),
  ];
  await Promise.all(jobs);
  // The others came when the first one was under way, at the end of the round.
  expect(ended).toEqual(['org_a signs', 'org_a signs', 'org_b verifies', 'org_c signs', 'org_a verifies', 'org_b signs']);
});

test.each([
  ['a copy', small],
  ['a thread of its own', large],
])('A content is joined once for all signatures and keys, and is verified in %s.', async (_, of) => {
  let joins = 0;
  const counted: LargeWork = {
    ...work('org_a'),
    inTurns: (pieces) => {
      joins++;
      return turns.of('org_a').run(pieces);
    },
  };
  const content = { head: 'head.', body: of };
  const wrong = Array.from({ length: 8 }, () => ({ key: publicKey, signature: signedBy(other.privateKey, of) }));
  const right = { key: other.publicKey, signature: signedBy(other.privateKey, of) };
  expect(await verifyLarge(content, wrong, counted)).toBe(false);
  expect(await verifyLarge(content, [...wrong, right], counted)).toBe(true);
  expect(await signLarge(content, [privateKey, other.privateKey], counted)).toEqual([
    signedBy(privateKey, of),
    signedBy(other.privateKey, of),
  ]);
  expect(joins).toBe(3);
});

test.each(['its content is joined', 'its thread runs'])(
  'What is aborted before its turn, or when %s, leaves, and the next one begins.',
  async (when) => {
    const [underWay, waiting] = [new AbortController(), new AbortController()];
    const content = { head: 'head.', body: large };
    const keys = Array.from({ length: 200 }, () => privateKey);
    const ended: string[] = [];
    const running = work('org_a', underWay.signal);
    const inTurns: LargeWork['inTurns'] = async (pieces) => {
      if (when === 'its content is joined') underWay.abort();
      const joined = await running.inTurns(pieces);
      // By then the thread has the content.
      setImmediate(() => underWay.abort());
      return joined;
    };
    const job = async (name: string, of: typeof keys, own: LargeWork): Promise<void> => {
      const made = await signLarge(content, of, own).catch((error: unknown) => error);
      ended.push(`${name} ${made instanceof AbandonedError ? 'abandoned' : 'made'}`);
    };
    const jobs = [
      job('first', keys, { ...running, inTurns }),
      job('second', [privateKey], work('org_a', waiting.signal)),
      job('third', [privateKey], work('org_a')),
    ];
    waiting.abort();
    await Promise.all(jobs);
    await expect(signLarge(content, [privateKey], work('org_a', waiting.signal))).rejects.toThrow(AbandonedError);
    expect(ended).toEqual(['second abandoned', 'first abandoned', 'third made']);
  },
);
