/**
 * One Prometheus text out of several processes': every sample gets the label `process`, and the samples of a metric
 * are grouped below one HELP and TYPE, as the format requires.
 */
export function mergeMetrics(texts: readonly { process: string; text: string }[]): string {
  const families = new Map<string, { head: string[]; samples: string[] }>();
  for (const { process, text } of texts) {
    let family: { head: string[]; samples: string[] } | undefined;
    for (const line of text.split('\n')) {
      const described = /^# (HELP|TYPE) (\S+) /.exec(line);
      if (described?.[1] !== undefined && described[2] !== undefined) {
        family = families.get(described[2]) ?? { head: [], samples: [] };
        families.set(described[2], family);
        const keyword = `# ${described[1]} `;
        if (!family.head.some((other) => other.startsWith(keyword))) family.head.push(line);
      } else if (line !== '' && !line.startsWith('#')) {
        family?.samples.push(labelled(line, process));
      }
    }
  }
  return [...families.values()].map(({ head, samples }) => `${[...head, ...samples].join('\n')}\n`).join('');
}

function labelled(sample: string, process: string): string {
  const nameEnd = sample.search(/[{ ]/);
  const label = `process="${process}"`;
  if (sample[nameEnd] !== '{') return `${sample.slice(0, nameEnd)}{${label}}${sample.slice(nameEnd)}`;
  const rest = sample.slice(nameEnd + 1);
  return `${sample.slice(0, nameEnd)}{${label}${rest.startsWith('}') ? '' : ','}${rest}`;
}
