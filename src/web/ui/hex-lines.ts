const perLine = 16;

/** How many lines the bytes have. */
export function hexLineCount(bytes: Uint8Array): number {
  return Math.ceil(bytes.length / perLine);
}

/** A line of sixteen bytes: its offset, the bytes as hexadecimal digits, and as ASCII with a dot for whatever is not printed. */
export function hexLine(bytes: Uint8Array, line: number): { offset: string; hex: string; ascii: string } {
  const part = bytes.subarray(line * perLine, (line + 1) * perLine);
  const digits = Array.from(part, (byte) => byte.toString(16).padStart(2, '0'));
  const hex = `${digits.slice(0, 8).join(' ')}  ${digits.slice(8).join(' ')}`;
  return {
    offset: (line * perLine).toString(16).padStart(8, '0'),
    hex: hex.padEnd(perLine * 3),
    ascii: Array.from(part, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join(''),
  };
}
