// The dialog of a conversation's settings: the system prompt and the choice of tokens. An empty field is not sent; its box shows
// the server's default.
import { useEffect, useRef } from 'preact/hooks';
import type { Settings } from '../conversation';
import { kFields, kNumbers } from '../settings_fields';
import { chats } from './chats';

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
