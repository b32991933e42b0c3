import { PosthornError } from '../../core/errors.ts';

const newline = 0x0a;

/**
 * Lines of a byte stream, without their newline; a rest without one is dropped, as it belongs to a torn stream.
 * Throws INTERNAL on a line above `maxBytes`.
 */
export async function* lines(chunks: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<string> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      parts.push(chunk.subarray(start, end));
      yield Buffer.concat(parts).toString('utf8');
      parts = [];
      length = 0;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    parts.push(chunk.subarray(start));
    length += chunk.length - start;
    if (length > maxBytes) throw new PosthornError('INTERNAL', `the API server sent a line of more than ${maxBytes} bytes`);
  }
}
