/**
 * A secret as it is used: line breaks at the end of a line come from files and `echo` and are no part of it. What has several lines, such as a
 * certificate, stays as it is.
 */
export function plainSecret(value: string): string {
  return /^[^\r\n]*[\r\n]+$/.test(value) ? value.replace(/[\r\n]+$/, '') : value;
}
