// A conversation is a tree of turns: an edited question or a second answer is a branch beside the first one. The page shows
// the path that follows `chosen` from the root. Pure functions; a changed conversation is a new object.
import { kNumbers, type NumberName } from './settings_fields';

export type Role = 'user' | 'assistant' | 'tool';
export type State = 'writing' | 'done' | 'stopped' | 'cut' | 'failed';

export interface Attachment { name: string; text: string; image?: string } // image: a picture's data: URL, without a text
export interface Call { id: string; name: string; arguments: string }

export interface Turn {
  id: string;
  parent: string; // '' for the first ones
  role: Role;
  text: string;
  at: number; // milliseconds since 1970; orders siblings
  attachments?: Attachment[];
  callId?: string; // of a tool's result
  // of an answer:
  state?: State;
  model?: string;
  pieces?: number[]; // where the pieces of its text end, as the server sent them: mostly one token each
  reasoning?: string;
  calls?: Call[];
  error?: string;
  answer?: string; // the server's id, which its receipt goes by
  finish?: string;
  limit?: number; // max_tokens of its request
  tokens?: number; // as the server counted them
  promptTokens?: number;
  firstMs?: number; // until the first token
  writingMs?: number; // from the first token to the end
}

export interface Settings extends Partial<Record<NumberName, number>> {
  system: string;
  stop: string; // one to a line
  reasoning_effort: string; // '' leaves it to the model
  tools: string; // JSON, as OpenAI has it; '' for none
}

export interface Conversation {
  id: string;
  title: string;
  changed: number;
  model: string;
  settings: Settings;
  turns: Record<string, Turn>;
  chosen: Record<string, string>; // the child that is shown, by its parent
}

export const newId = () => crypto.getRandomValues(new Uint32Array(3)).reduce((text, n) => text + n.toString(36), '');
export const plainSettings = (): Settings => ({ system: '', stop: '', reasoning_effort: '', tools: '' });

export const newConversation = (model: string, settings: Settings): Conversation => ({
  id: newId(), title: 'New conversation', changed: Date.now(), model, settings, turns: {}, chosen: {},
});

export function path(c: Conversation): Turn[] {
  const all: Turn[] = [];
  for (let id = c.chosen['']; id && c.turns[id]; id = c.chosen[id]) all.push(c.turns[id]);
  return all;
}

export const siblings = (c: Conversation, of: Turn): Turn[] =>
  Object.values(c.turns).filter((t) => t.parent === of.parent).sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));

// The turn is new or takes the place of the one with its id; it is shown.
export function withTurn(c: Conversation, turn: Turn): Conversation {
  const first = turn.role === 'user' && !Object.keys(c.turns).length;
  return {
    ...c,
    changed: Date.now(),
    title: first ? titleOf(turn) : c.title,
    turns: { ...c.turns, [turn.id]: turn },
    chosen: turn.id in c.turns ? c.chosen : { ...c.chosen, [turn.parent]: turn.id },
  };
}

const titleOf = (turn: Turn) => {
  const line = turn.text.trim().split('\n')[0] || turn.attachments?.[0]?.name || 'Conversation';
  return line.length > 60 ? line.slice(0, 57) + '…' : line;
};

// Where two answers part: the length of the text that both begin with, and the number of whole pieces in it.
export function parting(a: Turn, b: Turn): { at: number; pieces?: number } {
  let at = 0;
  while (at < a.text.length && a.text[at] === b.text[at]) at++;
  if (/[\ud800-\udbff]/.test(a.text[at - 1] ?? '')) at--; // one character is never cut
  const whole = [a, b].map((t) => t.pieces?.filter((end) => end <= at).length);
  return { at, pieces: whole.every((n) => n !== undefined) ? Math.min(...(whole as number[])) : undefined };
}

// An answer without reasoning and calls can be continued from any of its pieces.
export const branches = (t: Turn) => t.role === 'assistant' && t.state !== 'writing' && !t.reasoning && !t.calls?.length && (t.pieces?.length ?? 0) > 1;

export const choose = (c: Conversation, turn: Turn): Conversation => ({ ...c, chosen: { ...c.chosen, [turn.parent]: turn.id } });

// A turn as input of a model: pictures, the text, and behind it texts of files, each under its name.
function content(turn: Turn): string | object[] {
  const all = turn.attachments ?? [], pictures = all.filter((f) => f.image);
  const files = all.filter((f) => !f.image).map((f) => `\n\nFile ${f.name}:\n\`\`\`\n${f.text}\n\`\`\``);
  const text = turn.text + files.join('');
  return pictures.length ? [...pictures.map((f) => ({ type: 'image_url', image_url: { url: f.image } })), { type: 'text', text }] : text;
}

// In the form of POST /v1/chat/completions.
export function messages(system: string, turns: Turn[]): object[] {
  const all: object[] = system.trim() ? [{ role: 'system', content: system }] : [];
  for (const t of turns) {
    if (t.role === 'tool') all.push({ role: 'tool', tool_call_id: t.callId, content: t.text });
    else if (t.role === 'assistant' && t.calls?.length)
      all.push({ role: 'assistant', content: t.text || null, tool_calls: t.calls.map((c) => ({ id: c.id, type: 'function', function: { name: c.name, arguments: c.arguments } })) });
    else all.push({ role: t.role, content: content(t) });
  }
  return all;
}

// ---- conversations from a file, which may be anything

const text = (x: unknown, most = 4_000_000) => (typeof x === 'string' ? x.slice(0, most) : '');
const whole = (x: unknown) => (typeof x === 'number' && Number.isFinite(x) ? x : undefined);
const list = (x: unknown): unknown[] => (Array.isArray(x) ? x : []);
const record = (x: unknown) => (x && typeof x === 'object' ? (x as Record<string, unknown>) : {});
const safeKey = (x: unknown) => { const id = text(x, 60); return /^[\w-]+$/.test(id) && !(id in {}) ? id : ''; };

const kPicture = /^data:image\/(png|jpeg|webp|gif);base64,[A-Za-z0-9+/]+=*$/;

function readAttachment(x: unknown): Attachment {
  const f = record(x), image = text(f.image, 12_000_000);
  return { name: text(f.name, 200), text: text(f.text), ...(kPicture.test(image) ? { image } : {}) };
}

function readTurn(x: unknown): Turn | undefined {
  const t = record(x);
  const role = (['user', 'assistant', 'tool'] as const).find((r) => r === t.role);
  if (!safeKey(t.id) || !role) return undefined;
  const turn: Turn = { id: safeKey(t.id), parent: safeKey(t.parent), role, text: text(t.text), at: whole(t.at) ?? 0 };
  const files = list(t.attachments).map(readAttachment);
  if (files.length) turn.attachments = files;
  if (t.callId) turn.callId = text(t.callId, 200);
  if (role !== 'assistant') return turn;
  turn.state = (['done', 'stopped', 'cut', 'failed'] as const).find((s) => s === t.state) ?? 'cut';
  for (const name of ['model', 'reasoning', 'error', 'answer', 'finish'] as const) if (t[name]) turn[name] = text(t[name]);
  for (const name of ['tokens', 'limit', 'promptTokens', 'firstMs', 'writingMs'] as const) turn[name] = whole(t[name]);
  const pieces = list(t.pieces).map(whole);
  if (pieces.length && pieces.every((end, i) => end !== undefined && end > (pieces[i - 1] ?? 0) && end <= turn.text.length)) turn.pieces = pieces as number[];
  const calls = list(t.calls).map((c) => ({ id: text(record(c).id, 200), name: text(record(c).name, 200), arguments: text(record(c).arguments) }));
  if (calls.length) turn.calls = calls;
  return turn;
}

function readConversation(x: unknown): Conversation | undefined {
  const c = record(x);
  const turns: Record<string, Turn> = {};
  for (const each of Object.values(record(c.turns))) {
    const turn = readTurn(each);
    if (turn) turns[turn.id] = turn;
  }
  if (!Object.keys(turns).length) return undefined;
  const s = record(c.settings), settings = plainSettings();
  for (const name of ['system', 'stop', 'reasoning_effort', 'tools'] as const) settings[name] = text(s[name]);
  for (const name of kNumbers) settings[name] = whole(s[name]);
  const chosen: Record<string, string> = {};
  for (const t of Object.values(turns)) { // a loop of parents is never shown: a path begins at ''
    const wanted = safeKey(record(c.chosen)[t.parent]);
    if (!(t.parent in chosen)) chosen[t.parent] = turns[wanted]?.parent === t.parent ? wanted : t.id;
  }
  return { id: newId(), title: text(c.title, 200) || 'Imported', changed: whole(c.changed) ?? Date.now(), model: text(c.model, 200), settings, turns, chosen };
}

export const toFile = (all: Conversation[]) => JSON.stringify({ format: 'gimbal-conversations', version: 1, conversations: all }, null, 1);

// Throws an Error with a sentence for people.
export function fromFile(json: string): Conversation[] {
  let file: Record<string, unknown>;
  try { file = record(JSON.parse(json)); } catch { throw new Error('This file is not JSON.'); }
  if (file.format !== 'gimbal-conversations') throw new Error('This is not a file of conversations from this page.');
  const all = list(file.conversations).map(readConversation).filter((c) => c !== undefined);
  if (!all.length) throw new Error('There is no conversation in this file.');
  return all;
}
