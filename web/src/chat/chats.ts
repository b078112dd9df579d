// The conversations of this browser, and the answers in progress.
import { ApiError, chat, models, type Event } from '../api';
import { type Attachment, type Conversation, choose, fromFile, messages, newConversation, newId, path, plainSettings, type Settings, type Turn, withTurn } from '../conversation';
import { kNumbers } from '../settings_fields';
import { forget, keepPartial, loadAll, remember, remembered, save } from '../store';

const kDrawMs = 50, kSaveMs = 400;

class Chats {
  all: Conversation[] = [];
  current = '';
  models: string[] = [];
  ready = false;
  problem = ''; // why there are no models
  said = ''; // for screen readers
  readonly writing = new Map<string, { turn: Turn; abort: AbortController }>(); // by conversation
  private readonly unsaved = new Set<Turn>(); // more of them is here than in the database
  private readonly listeners = new Set<() => void>();
  private askingForModels: Promise<void> | undefined;

  subscribe(f: () => void) { this.listeners.add(f); return () => { this.listeners.delete(f); }; }
  private changed() { for (const f of this.listeners) f(); }
  say(text: string) { this.said = text; this.changed(); }

  async start() {
    addEventListener('pagehide', () => { if (this.unsaved.size) keepPartial([...this.unsaved]); });
    this.all = await loadAll();
    this.current = this.all.find((c) => c.id === remembered('current'))?.id ?? '';
    if (!this.current) this.create();
    this.ready = true;
    this.changed();
    await this.loadModels();
  }

  // Calls during a pending request share its answer.
  loadModels() { return (this.askingForModels ??= this.askForModels().finally(() => { this.askingForModels = undefined; })); }
  private async askForModels() {
    try {
      this.models = await models();
      this.problem = '';
      const usual = this.models.includes(remembered('model')) ? remembered('model') : this.models[0] ?? '';
      for (const c of this.all)
        if (!c.model || (c.id === this.current && !this.models.includes(c.model))) void this.put({ ...c, model: usual }, false);
    } catch (e) { this.problem = (e as Error).message; }
    this.changed();
  }

  get conversation(): Conversation { return this.all.find((c) => c.id === this.current)!; }

  // Every change of a conversation goes through here.
  private put(c: Conversation, keep = true) {
    const at = this.all.findIndex((other) => other.id === c.id);
    this.all = at < 0 ? [c, ...this.all] : this.all.with(at, c);
    this.changed();
    return keep && Object.keys(c.turns).length ? save(c) : Promise.resolve();
  }

  open(id: string) { this.current = id; remember('current', id); this.changed(); }
  create() {
    const empty = this.all.find((c) => !Object.keys(c.turns).length);
    if (empty) return this.open(empty.id);
    let settings = plainSettings();
    try { settings = { ...settings, ...JSON.parse(remembered('settings') || '{}') }; } catch { /* plain ones */ }
    const c = newConversation(remembered('model') || this.models[0] || '', settings);
    if (this.models.length && !this.models.includes(c.model)) c.model = this.models[0];
    void this.put(c, false);
    this.open(c.id);
  }
  async remove(id: string) {
    this.stop(id);
    this.all = this.all.filter((c) => c.id !== id);
    if (this.current === id) this.all.length ? this.open(this.all[0].id) : this.create();
    this.changed();
    await forget(id);
  }
  import(json: string) {
    const read = fromFile(json);
    for (const c of read) void this.put(c);
    this.open(read[0].id);
    this.say(`${read.length} conversation${read.length > 1 ? 's' : ''} imported.`);
  }
  setModel(model: string) { remember('model', model); void this.put({ ...this.conversation, model }); }
  setSettings(settings: Settings) { remember('settings', JSON.stringify(settings)); void this.put({ ...this.conversation, settings }); }
  choose(turn: Turn) { void this.put(choose(this.conversation, turn)); }

  // ---- what makes an answer

  send(text: string, attachments: Attachment[]) {
    const parent = path(this.conversation).at(-1)?.id ?? '';
    this.add({ role: 'user', text, parent, ...(attachments.length ? { attachments } : {}) });
  }
  edit(turn: Turn, text: string) { this.add({ role: turn.role, text, parent: turn.parent, attachments: turn.attachments, callId: turn.callId }); }
  giveResult(answer: Turn, callId: string, text: string) {
    // The results of an answer's calls follow each other; the model continues when all are there.
    const last = path(this.conversation).at(-1)!;
    const turn: Turn = { id: newId(), role: 'tool', text, callId, parent: last.id, at: Date.now() };
    void this.put(withTurn(this.conversation, turn));
    const given = new Set(path(this.conversation).filter((t) => t.role === 'tool').map((t) => t.callId));
    if (answer.calls!.every((c) => given.has(c.id))) void this.answer(turn.id);
  }
  again(turn: Turn) { void this.answer(turn.parent); }
  // Keeps the first pieces of an answer and writes the rest anew, with another seed, as a version beside it.
  branch(turn: Turn, pieces: number) {
    const kept = turn.pieces!.slice(0, pieces);
    void this.answer(turn.parent, { text: turn.text.slice(0, kept.at(-1)), pieces: kept });
  }
  stop(id = this.current) { this.writing.get(id)?.abort.abort(); }

  private add(part: Omit<Turn, 'id' | 'at'>) {
    const turn: Turn = { ...part, id: newId(), at: Date.now() };
    void this.put(withTurn(this.conversation, turn));
    void this.answer(turn.id);
  }

  private async answer(parent: string, begun: { text: string; pieces?: number[] } = { text: '' }) {
    const id = this.current;
    if (this.writing.has(id)) return;
    const turn: Turn = { id: newId(), parent, role: 'assistant', ...begun, at: Date.now(), state: 'writing', model: this.conversation.model || undefined };
    const abort = new AbortController();
    this.writing.set(id, { turn, abort });
    const before = path(this.conversation);
    const turns = before.slice(0, before.findIndex((t) => t.id === parent) + 1);
    // The conversation may be changed meanwhile (or be gone): the turn is put into the one of that moment.
    const show = (keep: boolean) => { const c = this.all.find((other) => other.id === id); return c ? this.put(withTurn(c, { ...turn }), keep) : Promise.resolve(); };
    this.unsaved.add(turn);
    void show(true);
    this.say('The answer is being written.');
    const started = performance.now();
    let first = 0, drawn = 0, saved = performance.now(), timer = 0;
    const progress = () => {
      const now = performance.now(), wait = Math.max(kDrawMs, turn.text.length / 2000) - (now - drawn);
      if (wait > 0) { timer ||= window.setTimeout(() => { timer = 0; progress(); }, wait); return; }
      drawn = now;
      const keep = now - saved > kSaveMs;
      if (keep) saved = now;
      void show(keep);
    };
    try {
      if (!this.models.length) await unlessAborted(this.loadModels(), abort.signal); // a slow network: it was asked before
      if (!this.models.length) throw new Error(this.problem || 'The server has no models.');
      const asked = this.all.find((c) => c.id === id)!;
      turn.model = asked.model;
      turn.limit = asked.settings.max_tokens;
      await chat(request(asked, turns, begun.text), abort.signal, (e: Event) => {
        if (e.id) turn.answer = e.id;
        if (e.usage) turn.tokens = e.usage.completion_tokens, turn.promptTokens = e.usage.prompt_tokens;
        const choice = e.choices?.[0], delta = choice?.delta;
        if (choice?.finish_reason) turn.finish = choice.finish_reason;
        if (!delta) return;
        if (delta.content) turn.text += delta.content, (turn.pieces ??= []).push(turn.text.length);
        if (delta.reasoning_content) turn.reasoning = (turn.reasoning ?? '') + delta.reasoning_content;
        for (const c of delta.tool_calls ?? []) addCall(turn, c);
        if (!first && (delta.content || delta.reasoning_content || delta.tool_calls)) first = performance.now();
        progress();
      });
      turn.state = 'done';
    } catch (e) {
      if (abort.signal.aborted) turn.state = 'stopped';
      else turn.state = 'failed', turn.error = (e as Error).message;
      if (e instanceof ApiError && e.status === 401) turn.error = 'The server wants an API key.';
    }
    clearTimeout(timer);
    if (first) turn.firstMs = first - started, turn.writingMs = performance.now() - first;
    this.writing.delete(id);
    void show(true).then(() => this.unsaved.delete(turn));
    this.say(turn.state === 'failed' ? `No answer: ${turn.error}` : `${turn.state === 'stopped' ? 'Answer stopped' : 'Answer'}: ${turn.text.slice(0, 600)}`);
  }
}

// `begun`: the beginning of the answer, which the model continues.
function request({ model, settings: s }: Conversation, turns: Turn[], begun: string): object {
  const request: Record<string, unknown> = { model, messages: messages(s.system, turns) };
  for (const name of kNumbers) if (s[name] !== undefined) request[name] = s[name];
  const stop = s.stop.split('\n').filter((line) => line !== '');
  if (stop.length) request.stop = stop;
  if (s.reasoning_effort) request.reasoning_effort = s.reasoning_effort;
  if (s.tools.trim()) {
    try { request.tools = JSON.parse(s.tools); } catch { throw new Error('The tools in the settings are not JSON.'); }
  }
  if (begun) {
    (request.messages as object[]).push({ role: 'assistant', content: begun });
    request.continue_final_message = true;
    request.seed = crypto.getRandomValues(new Uint32Array(1))[0];
  }
  return request;
}

// Rejects at once when `signal` is aborted, and drops the later result of `work`.
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    work.then(resolve, reject);
  });
}

function addCall(turn: Turn, part: { index: number; id?: string; function?: { name?: string; arguments?: string } }) {
  const calls = (turn.calls ??= []);
  const call = (calls[part.index] ??= { id: '', name: '', arguments: '' });
  call.id += part.id ?? '';
  call.name += part.function?.name ?? '';
  call.arguments += part.function?.arguments ?? '';
}

export const chats = new Chats();
