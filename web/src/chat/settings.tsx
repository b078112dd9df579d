// How a model is asked: the system prompt and the choice of tokens. What is left empty is left to the server.
import { useEffect, useRef } from 'preact/hooks';
import { kNumbers, type Settings } from '../conversation';
import { chats } from './chats';

const kFields: Record<(typeof kNumbers)[number], { label: string; word: string; min?: number; max?: number; step: number | 'any' }> = {
  temperature: { label: 'Temperature', word: '0: always the likeliest token; 1: as the model thinks', min: 0, max: 2, step: 'any' },
  top_p: { label: 'Top p', word: 'only the likeliest tokens that together have this probability', min: 0, max: 1, step: 'any' },
  top_k: { label: 'Top k', word: 'only so many of the likeliest tokens', min: 0, step: 1 },
  min_p: { label: 'Min p', word: 'only tokens with this share of the likeliest one’s probability', min: 0, max: 1, step: 'any' },
  typical_p: { label: 'Typical p', word: 'only tokens about as surprising as expected', min: 0, max: 1, step: 'any' },
  repeat_penalty: { label: 'Repeat penalty', word: 'above 1: words that were there become less likely', min: 0.01, step: 'any' },
  frequency_penalty: { label: 'Frequency penalty', word: 'the more often a word was there, the less likely', min: -2, max: 2, step: 'any' },
  presence_penalty: { label: 'Presence penalty', word: 'a word that was there is less likely', min: -2, max: 2, step: 'any' },
  seed: { label: 'Seed', word: 'the same seed gives the same answer; empty: another one each time', min: 0, step: 1 },
  max_tokens: { label: 'Most tokens', word: 'of an answer; empty: until the context is full', min: 1, step: 1 },
};

export function SettingsDialog({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null), form = useRef<HTMLFormElement>(null);
  const { settings: s } = chats.conversation;
  useEffect(() => dialog.current!.showModal(), []);
  const keep = (e: Event) => {
    e.preventDefault();
    const data = new FormData(form.current!);
    const read = (name: string) => String(data.get(name) ?? '');
    const next: Settings = { system: read('system'), stop: read('stop'), reasoning_effort: read('reasoning_effort'), tools: read('tools') };
    for (const name of kNumbers) if (read(name) !== '') next[name] = Number(read(name));
    chats.setSettings(next);
    dialog.current!.close();
  };
  return (
    <dialog ref={dialog} class="settings" aria-labelledby="settings-title" onClose={close}>
      <form ref={form} onSubmit={keep}>
        <h2 id="settings-title">How the model is asked</h2>
        <label>System prompt <small>what the model is told before everything else</small>
          <textarea name="system" rows={4} defaultValue={s.system} /></label>
        <div class="fields">
          {kNumbers.map((name) => (
            <label key={name}>{kFields[name].label} <small>{kFields[name].word}</small>
              <input name={name} type="number" inputMode="decimal" min={kFields[name].min} max={kFields[name].max} step={kFields[name].step} defaultValue={s[name] === undefined ? '' : String(s[name])} /></label>
          ))}
          <label>Reasoning <small>how much a model that can reason does so</small>
            <select name="reasoning_effort" defaultValue={s.reasoning_effort}>
              {['', 'none', 'low', 'medium', 'high'].map((v) => <option key={v} value={v} selected={v === s.reasoning_effort}>{v || 'left to the model'}</option>)}
            </select></label>
        </div>
        <label>Stop texts <small>one to a line; an answer ends before them</small><textarea name="stop" rows={2} defaultValue={s.stop} /></label>
        <label>Tools <small>JSON, a list as OpenAI’s API has it; you give the results yourself</small><textarea name="tools" rows={3} spellcheck={false} defaultValue={s.tools} /></label>
        <div class="row"><button class="strong">Keep</button><button type="button" onClick={() => dialog.current!.close()}>Cancel</button></div>
      </form>
    </dialog>
  );
}
