// The numbers among a conversation's settings, by the names of the API. `usual` is the server's default, from
// src/runtime/sampling_table.h.
interface Field { label: string; word: string; usual: string; min?: number; max?: number; step: number | 'any' }

const fields = <K extends string>(of: Record<K, Field>) => of;

export const kFields = fields({
  temperature: { label: 'Temperature', word: '0: always the likeliest token; higher: more random', usual: '1', min: 0, max: 2, step: 'any' },
  top_p: { label: 'Top p', word: 'only the likeliest tokens that together have this probability', usual: '1 (off)', min: 0, max: 1, step: 'any' },
  top_k: { label: 'Top k', word: 'only this number of the likeliest tokens', usual: '0 (off)', min: 0, step: 1 },
  min_p: { label: 'Min p', word: 'only tokens with this share of the likeliest one’s probability', usual: '0 (off)', min: 0, max: 1, step: 'any' },
  typical_p: { label: 'Typical p', word: 'only tokens about as surprising as expected', usual: '1 (off)', min: 0, max: 1, step: 'any' },
  repeat_penalty: { label: 'Repeat penalty', word: 'above 1: tokens of the text so far become less likely', usual: '1 (off)', min: 0.01, step: 'any' },
  frequency_penalty: { label: 'Frequency penalty', word: 'the more often a token occurred, the less likely', usual: '0 (off)', min: -2, max: 2, step: 'any' },
  presence_penalty: { label: 'Presence penalty', word: 'a token that occurred is less likely', usual: '0 (off)', min: -2, max: 2, step: 'any' },
  seed: { label: 'Seed', word: 'the same seed gives the same answer', usual: 'another one each time', min: 0, step: 1 },
  max_tokens: { label: 'Max tokens', word: 'the longest answer', usual: 'until the context is full', min: 1, step: 1 },
});

export type NumberName = keyof typeof kFields;
export const kNumbers = Object.keys(kFields) as NumberName[];
