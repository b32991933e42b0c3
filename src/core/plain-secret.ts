/**
 * Returns a secret without line breaks at its end, which files and `echo` add. A secret of several lines, such as a certificate, is returned unchanged.
 */
export function plainSecret(value: string): string {
  return /^[^\r\n]*[\r\n]+$/.test(value) ? value.replace(/[\r\n]+$/, '') : value;
}
