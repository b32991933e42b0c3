/** The rows of a report. Failures are among them, and make the run end with 1. */
export function verdict() {
  const rows: [string, string][] = [];
  let isBad = false;
  return {
    rows,
    mustBe: (what: string, isSo: boolean): void => {
      if (isSo) return;
      isBad = true;
      rows.push(['NOT AS IT MUST BE', what]);
    },
    exitCode: (): number => (isBad ? 1 : 0),
  };
}
