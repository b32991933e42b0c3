import { readFileSync } from 'node:fs';

const dockerfile = readFileSync(new URL('../../../Dockerfile', import.meta.url), 'utf8');
const option = /"(--max-semi-space-size=\d+)"/.exec(dockerfile)?.[1];
if (option === undefined) throw new Error('the Dockerfile does not say how large the young generation may be');

/** Value of NODE_OPTIONS with which a program runs as in the image. */
export const nodeOptions = option;
