import { createHash, timingSafeEqual } from 'node:crypto';

/** Returns the test whether a text is one of the tokens. It takes equally long for every text: all digests are equally long, and each is compared. */
export function knownTokens(tokens: readonly string[]): (sent: string) => boolean {
  const known = tokens.map(digest);
  return (sent) => {
    const wanted = digest(sent);
    let isKnown = false;
    for (const each of known) if (timingSafeEqual(each, wanted)) isKnown = true;
    return isKnown;
  };
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
