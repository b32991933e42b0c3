import { z } from 'zod';
import { settingNotHad } from '../../http/setting-not-had.ts';

const json = z.literal('json');

/** In what formats a transform reads and writes, as clients of the hosted API say it: Posthorn hands every transform JSON. */
export const contentFormats = {
  body: {
    inputFormat: settingNotHad(json, 'Nothing but json: a payload of another type reaches the transform as text.'),
    outputFormat: settingNotHad(json, 'Nothing but json: what the code makes decides the content type.'),
  },
  record: { inputFormat: json.describe('Always json.'), outputFormat: json.describe('Always json.') },
  shown: { inputFormat: 'json', outputFormat: 'json' },
} as const;
