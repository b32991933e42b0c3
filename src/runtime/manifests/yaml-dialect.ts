import type { DocumentOptions, ParseOptions, ScalarTag, SchemaOptions, Tags, ToJSOptions } from 'yaml';

/** YAML 1.2 spells octal numbers so; kubectl takes both spellings. */
const newerOctal: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  format: 'OCT',
  test: /^[-+]?0o[0-7_]+$/,
  resolve: (text) => {
    const digits = text.replaceAll('_', '').replace(/^[-+]?0o/, '');
    return text.startsWith('-') ? -Number.parseInt(digits, 8) : Number.parseInt(digits, 8);
  },
};

/** kubectl returns the text that the Base64 encodes. */
const binary: ScalarTag = {
  tag: 'tag:yaml.org,2002:binary',
  resolve: (text) => Buffer.from(text, 'base64').toString(),
};

/** YAML 1.1 has times, sets and numbers of base 60, which kubectl reads as text or not at all. */
const notInKubectl = new Set(['timestamp', 'binary', 'omap', 'pairs', 'set'].map((name) => `tag:yaml.org,2002:${name}`));

function kubectlTags(tags: Tags): Tags {
  const kept = tags.filter((tag) => typeof tag === 'string' || (!notInKubectl.has(tag.tag) && !('format' in tag && tag.format === 'TIME')));
  return [newerOctal, binary, ...kept];
}

/**
 * Reads manifests as kubectl does, which has YAML 1.1 with a few exceptions: `no`, `on` and `y` are booleans, `0123` is octal, `1_000` is a number, and
 * dates and `1:30` are text.
 */
export const yamlDialect: ParseOptions & DocumentOptions & SchemaOptions & ToJSOptions = {
  version: '1.1',
  schema: 'yaml-1.1',
  merge: true,
  customTags: kubectlTags,
};
