// The settings of a conversation: the system prompt and the choice of tokens. An empty field is not sent; its box shows the
// server's default (`usual`, from src/runtime/sampling_table.h).
import { useEffect, useRef } from 'preact/hooks';
import { kNumbers, type Settings } from '../conversation';
import { chats } from './chats';

const kFields: Record<(typeof kNumbers)[number], { label: string; word: string; usual: string; min?: number; max?: number; step: number | 'any' }> = {
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
        <div><h2 id="settings-title">Settings of this conversation</h2><p class="quiet">An empty box shows the default, which then counts.</p></div>
        <label>System prompt <small>instructions before the first message</small>
          <textarea name="system" rows={4} placeholder="none" defaultValue={s.system} /></label>
        <div class="fields">
          {kNumbers.map((name) => (
            <label key={name}>{kFields[name].label} <small>{kFields[name].word}</small>
              <input name={name} type="number" inputMode="decimal" min={kFields[name].min} max={kFields[name].max} step={kFields[name].step} placeholder={kFields[name].usual} defaultValue={s[name] === undefined ? '' : String(s[name])} /></label>
          ))}
          <label>Reasoning <small>how much the model reasons, if it can</small>
            <select name="reasoning_effort" defaultValue={s.reasoning_effort}>
              {['', 'none', 'low', 'medium', 'high'].map((v) => <option key={v} value={v} selected={v === s.reasoning_effort}>{v || 'left to the model'}</option>)}
            </select></label>
        </div>
        <label>Stop sequences <small>one per line; an answer ends before them</small><textarea name="stop" rows={2} placeholder="none" defaultValue={s.stop} /></label>
        <label>Tools <small>JSON, a list as in OpenAI’s API; you give the results yourself</small><textarea name="tools" rows={3} placeholder="none" spellcheck={false} defaultValue={s.tools} /></label>
        <div class="row"><button class="strong">Save</button><button type="button" onClick={() => dialog.current!.close()}>Cancel</button></div>
      </form>
    </dialog>
  );
}
