import { z } from 'zod';
import { settingNotHad } from '../../http/setting-not-had.ts';

const json = z.literal('json');

/** Formats that a transform reads and writes, in the words of the hosted API: Posthorn passes JSON to every transform. */
export const contentFormats = {
  body: {
    inputFormat: settingNotHad(json, 'Nothing but json: a payload of another type reaches the transform as text.'),
    outputFormat: settingNotHad(json, 'Nothing but json: what the code makes decides the content type.'),
  },
  record: { inputFormat: json.describe('Always json.'), outputFormat: json.describe('Always json.') },
  shown: { inputFormat: 'json', outputFormat: 'json' },
} as const;
